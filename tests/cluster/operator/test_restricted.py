"""Where a namespace allows only harmless pods, and where the cluster chooses the user."""

import pytest

from mpi_operator.kube.resources import NAMESPACES
from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import FLAVOURS, one_rank_each, pi_as_user
from tests.support.pods import RESTRICTED

USERS = {
    "mpiuser": {"runAsUser": 1000},
    "a user that no image knows": {"runAsUser": 123456, "runAsGroup": 0},
    "a user and a group that no image knows": {"runAsUser": 123456, "runAsGroup": 123456},
}


@pytest.mark.parametrize("user", USERS)
async def test_jobs_run_under_pod_security_restricted(lab: Lab, user: str) -> None:
    enforce = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    await lab.client.patch(NAMESPACES, lab.namespace, enforce)
    for mpi, flavour in FLAVOURS.items():
        await lab.submit(pi_as_user(mpi, flavour, security=RESTRICTED | USERS[user]))

    await lab.succeed_all(FLAVOURS)

    for mpi in FLAVOURS:
        assert await lab.ranks(mpi) == one_rank_each(mpi)
        assert await lab.restarts(mpi) == 0
