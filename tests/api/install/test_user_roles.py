"""What people may do with MPIJobs who have one of Kubernetes' own roles in a namespace."""

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from devcluster.control_plane import ControlPlane
from tests.support.kubectl import Kubectl
from tests.support.mpijobs import install_on
from tests.support.waiting import block_until

USERS = Path(__file__).parents[3] / "deploy/rbac/users.yaml"
READS = {"get", "list", "watch"}
WRITES = {"create", "update", "patch", "delete"}

May = Callable[[str, str], bool]


@pytest.fixture
def may(control_plane: ControlPlane, tmp_path: Path) -> May:
    """Whether a user with a role of Kubernetes may do something with MPIJobs."""
    install_on(control_plane.kubeconfig())  # kubectl has to know the kind
    kubectl, namespace = Kubectl(control_plane.kubeconfig(), tmp_path), f"roles-{uuid.uuid4()}"
    assert kubectl("create", "namespace", namespace).code == 0
    assert kubectl("apply", "-f", str(USERS)).code == 0
    for role in ("admin", "edit", "view"):
        binding = (f"--clusterrole={role}", f"--user={role}", f"--namespace={namespace}")
        assert kubectl("create", "rolebinding", role, *binding).code == 0

    def ask(role: str, verb: str) -> bool:
        who = (f"--as={role}", f"--namespace={namespace}")
        return kubectl("auth", "can-i", verb, "mpijobs.kubeflow.org", *who).output == "yes\n"

    return ask


@pytest.mark.parametrize("role", ["admin", "edit"])
def test_who_may_create_jobs_may_create_mpijobs(may: May, role: str) -> None:
    block_until(lambda: may(role, "create"), 30)  # Kubernetes adds the rules to its roles
    assert all(may(role, verb) for verb in READS | WRITES)


def test_who_may_view_jobs_may_view_mpijobs(may: May) -> None:
    block_until(lambda: may("view", "list"), 30)
    assert all(may("view", verb) for verb in READS)
    assert not any(may("view", verb) for verb in WRITES)
