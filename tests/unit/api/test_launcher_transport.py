"""How a launcher reaches its workers: the job decides, else its version. Nothing is guessed."""

import pytest

from mpi_operator.api import decode_job, warnings
from mpi_operator.api.launcher_transport import Transport, transport
from tests.support.mpijobs import mpijob

TRANSPORT = "mpi-operator.kubeflow.org/transport"
WRITTEN_IN = "mpi-operator.kubeflow.org/written-in"


def a_job(annotations):
    manifest = mpijob("pi", "lab")
    manifest["metadata"]["annotations"] = annotations
    return manifest


@pytest.mark.parametrize(
    ("annotations", "way"),
    [
        pytest.param({}, "ssh", id="v2beta1"),
        pytest.param({WRITTEN_IN: "v1"}, "exec", id="v1"),
        pytest.param({WRITTEN_IN: "v1alpha2"}, "exec", id="v1alpha2"),
        pytest.param({WRITTEN_IN: "v1alpha1"}, "exec", id="v1alpha1"),
        pytest.param({TRANSPORT: "exec"}, "exec", id="v2beta1 that says exec"),
        pytest.param({WRITTEN_IN: "v1", TRANSPORT: "ssh"}, "ssh", id="v1 that says ssh"),
        pytest.param({WRITTEN_IN: "v1", TRANSPORT: " SSH "}, "ssh", id="however it is written"),
        pytest.param({TRANSPORT: "rsh"}, "ssh", id="v2beta1 that says something else"),
        pytest.param({WRITTEN_IN: "v1", TRANSPORT: ""}, "exec", id="v1 that says nothing"),
    ],
)
def test_the_transport_of_a_job(annotations, way):
    assert transport(decode_job(a_job(annotations))) is Transport(way)


@pytest.mark.parametrize(("value", "warns"), [("ssh", False), ("exec", False), ("rsh", True)])
def test_an_unknown_transport_is_warned_about(value, warns):
    found = [str(each) for each in warnings(a_job({TRANSPORT: value}))]
    assert any(TRANSPORT in each and '"ssh" or "exec"' in each for each in found) is warns
