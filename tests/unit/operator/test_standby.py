"""What is wrong with a lease, in virtual time."""

import asyncio
from typing import Any

import pytest

from mpi_operator.kube import errors
from mpi_operator.kube.resources import Key
from mpi_operator.operator.health import Health
from mpi_operator.operator.standby import trouble_with, watch_over
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
    ("error", "trouble"),
    [
        pytest.param(None, "", id="somebody has it"),
        pytest.param(
            errors.NotFound(errors.Status()),
            "the Lease away/mpi-operator cannot be made: is there a namespace away?",
            id="nobody can make it",
        ),
        pytest.param(
            errors.NotSent("refused"),
            "the Lease away/mpi-operator cannot be read: refused",
            id="nobody knows",
        ),
    ],
)
async def test_what_is_wrong_with_a_lease(error, trouble):
    server: Any = Server(error)
    assert (await trouble_with(server, LOCK)).startswith(trouble)


@pytest.mark.looptime
async def test_trouble_is_told_once_and_forgotten_when_it_is_over(caplog):
    health = Health(World(), World())
    server: Any = Server(errors.NotFound(errors.Status()))
    watching = asyncio.create_task(watch_over(server, LOCK, health))
    await asyncio.sleep(35)
    assert health.lock_trouble
    assert len(caplog.records) == 1
    server.error = None
    await asyncio.sleep(10)
    assert not health.lock_trouble
    watching.cancel()


@pytest.mark.looptime
async def test_who_no_longer_stands_by_has_no_trouble():
    health = Health(World(), World())
    server: Any = Server(errors.NotSent("no"))
    watching = asyncio.create_task(watch_over(server, LOCK, health))
    await asyncio.sleep(15)
    assert health.lock_trouble
    watching.cancel()
    await asyncio.wait([watching])
    assert not health.lock_trouble
