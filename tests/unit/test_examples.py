"""The jobs in examples/ are jobs without surprises, and a program of theirs rejects bad flags."""

import runpy
import sys
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from mpi_operator.cli.job_input import job_file

EXAMPLES = Path(__file__).parents[2] / "examples"
# Fields that old manifests have, and new ones should not.
DEPRECATED = {
    name: ["spec.cleanPodPolicy"] for name in ("elastic-v1.yaml", "tensorflow-mnist-elastic.yaml")
}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*/*.yaml")), ids=lambda path: path.name)
def test_an_example_is_a_job(path):
    [loaded] = job_file.load(path).jobs
    assert [each.path.text for each in loaded.warnings] == DEPRECATED.get(path.name, [])


@pytest.fixture
def benchmark_flags(monkeypatch):
    """The flags that the benchmark gets from a command line, without TensorFlow."""
    for name in ("horovod", "horovod.tensorflow", "numpy", "tensorflow"):
        monkeypatch.setitem(sys.modules, name, MagicMock())
    program = EXAMPLES / "tensorflow-benchmarks/scripts/tf_cnn_benchmarks/tf_cnn_benchmarks.py"
    parsed_flags = runpy.run_path(str(program))["parsed_flags"]

    def parse(*flags):
        monkeypatch.setattr(sys, "argv", [program.name, *flags])
        return parsed_flags()

    return parse


@pytest.mark.parametrize("number", ["0", "-1"])
@pytest.mark.parametrize("flag", ["--batch_size", "--num_batches", "--display_every"])
def test_the_benchmark_rejects_numbers_that_give_no_figures(benchmark_flags, flag, number, capsys):
    with pytest.raises(SystemExit) as error:
        benchmark_flags(f"{flag}={number}")
    assert error.value.code == 2
    assert f"argument {flag}: must be at least 1" in capsys.readouterr().err


def test_the_benchmark_needs_no_warm_up(benchmark_flags):
    flags = benchmark_flags("--num_warmup_batches=0", "--num_batches=1", "--display_every=1")
    assert (flags.num_warmup_batches, flags.num_batches, flags.display_every) == (0, 1, 1)
