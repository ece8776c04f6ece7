"""A real API server with the CRD installed."""

import pytest

from devcluster.control_plane import ControlPlane
from tests.support.mpijobs import install_on


@pytest.fixture(scope="session", autouse=True)
def crd(control_plane: ControlPlane) -> None:
    """Installs our CRD, once for all tests because it is large.

    Only on a control plane of ours: on a user's cluster another CRD may be in use.
    """
    install_on(control_plane.kubeconfig())
