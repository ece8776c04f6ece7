"""Jobs that `mpijob run --dry-run` prints for programs, on a real API server."""

import pytest
import yaml
from click.testing import CliRunner

from mpi_operator.api import decode_job
from mpi_operator.cli.main import mpijob as command
from mpi_operator.kube.http import HttpClient
from tests.support.mpijobs import MPIJOBS, changed

SHAPES = [
    ["-np", "4", "--gpus", "1"],
    ["--workers", "2", "--slots", "2", "--gpus", "1", "--env", "A=$(B) $$"],
]


@pytest.mark.parametrize("mpi", ["openmpi", "mpich", "intel"])
@pytest.mark.parametrize("shape", SHAPES, ids=["ranks", "workers"])
async def test_the_server_stores_what_a_dry_run_prints(
    client: HttpClient, namespace: str, mpi: str, shape: list[str]
):
    words = ["run", *shape, "--mpi", mpi, "--image", "example.com/a:1", "--dry-run", "./a", "$(B)"]
    printed = yaml.safe_load(CliRunner().invoke(command, words).stdout)
    stored = await client.create(MPIJOBS, changed(printed, "metadata.namespace", namespace))
    assert decode_job(stored).spec == decode_job(printed).spec
