"""The jobs in examples/ are jobs, and nothing about them would surprise anybody."""

from pathlib import Path

import pytest

from mpi_operator.cli import job_file

EXAMPLES = Path(__file__).parents[2] / "examples"
# Fields that old manifests have, and new ones should not.
DEPRECATED = {
    name: ["spec.cleanPodPolicy"] for name in ("elastic-v1.yaml", "tensorflow-mnist-elastic.yaml")
}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*/*.yaml")), ids=lambda path: path.name)
def test_an_example_is_a_job(path):
    [loaded] = job_file.load(path).jobs
    assert [each.path.text for each in loaded.warnings] == DEPRECATED.get(path.name, [])
