"""Where a namespace allows only harmless pods, and where the cluster chooses the user."""

import pytest

from mpi_operator.kube.resources import NAMESPACES
from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import (
    FLAVOURS,
    one_rank_each,
    pi_as_user,
)
from tests.support.pods import RESTRICTED

USERS = {
    "mpiuser": {"runAsUser": 1000},
    "a user that no image knows": {"runAsUser": 123456, "runAsGroup": 0},
    "a user and a group that no image knows": {"runAsUser": 123456, "runAsGroup": 123456},
}


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("mpi", FLAVOURS)
async def test_jobs_run_under_pod_security_restricted(lab: Lab, mpi: str, user: str) -> None:
    enforce = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    await lab.client.patch(NAMESPACES, lab.namespace, enforce)
    security = RESTRICTED | USERS[user]

    await lab.submit(pi_as_user("pi", FLAVOURS[mpi], security=security))

    await lab.succeeds("pi")
    assert await lab.ranks("pi") == one_rank_each("pi")
    assert await lab.restarts("pi") == 0
