"""The jobs in examples/ are jobs, and nothing about them would surprise anybody."""

from pathlib import Path

import pytest
import yaml

from mpi_operator.api import decode_job, warnings

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*/*.yaml")), ids=lambda path: path.name)
def test_an_example_is_a_job(path):
    manifest = yaml.safe_load(path.read_text())
    decode_job(manifest)
    assert warnings(manifest) == []
