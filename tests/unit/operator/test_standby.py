"""Problems with the lease, in virtual time."""

import asyncio
from typing import Any

import pytest

from mpi_operator.kube import errors
from mpi_operator.kube.resources import Key
from mpi_operator.operator.health import Health
from mpi_operator.operator.standby import check_lease, lease_problem
from tests.unit.operator.test_health import World

LOCK = Key("away", "mpi-operator")


class Server:
    def __init__(self, error=None):
        self.error = error

    async def get(self, resource, name, namespace):
        if self.error:
            raise self.error
        return {}


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        pytest.param(None, "", id="held"),
        pytest.param(
            errors.NotFound(errors.Status()),
            "Lease away/mpi-operator cannot be created: check that namespace away exists",
            id="cannot be created",
        ),
        pytest.param(
            errors.NotSent("refused"),
            "Lease away/mpi-operator cannot be read: refused",
            id="unknown",
        ),
    ],
)
async def test_problems_with_the_lease(error, problem):
    server: Any = Server(error)
    assert (await lease_problem(server, LOCK)).startswith(problem)


@pytest.mark.looptime
async def test_a_problem_is_logged_once_and_cleared_when_it_is_over(caplog):
    health = Health(World(), World())
    server: Any = Server(errors.NotFound(errors.Status()))
    checking = asyncio.create_task(check_lease(server, LOCK, health))
    await asyncio.sleep(35)
    assert health.lease_problem
    assert len(caplog.records) == 1
    server.error = None
    await asyncio.sleep(10)
    assert not health.lease_problem
    checking.cancel()


@pytest.mark.looptime
async def test_the_problem_is_cleared_when_the_check_ends():
    health = Health(World(), World())
    server: Any = Server(errors.NotSent("no"))
    checking = asyncio.create_task(check_lease(server, LOCK, health))
    await asyncio.sleep(15)
    assert health.lease_problem
    checking.cancel()
    await asyncio.wait([checking])
    assert not health.lease_problem
