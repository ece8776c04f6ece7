"""Well-known jobs in the hub, to be read in review.

`pytest tests/unit/build tests/unit/api/conversion --update-golden` writes them anew.
"""

from pathlib import Path

import pytest
import yaml

from mpi_operator.api.conversion import UnitSettings, convert
from tests.support import golden
from tests.support.version_strategies import without_ours

_DIRECTORY = Path(__file__).parent / "golden"
_UNITS = UnitSettings(gpus_per_node=8)  # as the old prototype of the operator passed it


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("v1-elastic", id="an elastic Horovod job of v1"),
        pytest.param("v1-flyte", id="a job that Flyte writes"),
        pytest.param("v1alpha2-benchmarks", id="a finished benchmark of v1alpha2"),
        pytest.param("v1alpha1-simple", id="sixteen GPUs of v1alpha1"),
        pytest.param("v1alpha1-custom", id="replicas of v1alpha1"),
    ],
)
def test_hub(name, request):
    job = yaml.safe_load((_DIRECTORY / f"{name}.yaml").read_text())
    hub = convert(job, "v2beta1", _UNITS)
    is_update = request.config.getoption("--update-golden", default=False)
    golden.compare(_DIRECTORY / f"{name}.v2beta1.yaml", hub, is_update=is_update)
    assert without_ours(convert(hub, job["apiVersion"], _UNITS)) == job
