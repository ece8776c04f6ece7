"""Several operators, of which one works."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from devcluster.control_plane import ControlPlane
from mpi_operator.kube.resources import LEASES
from tests.support.jobs import Jobs
from tests.support.mpijobs import mpijob
from tests.support.operator import Operator, account, started
from tests.support.waiting import until


@pytest.fixture
async def pair(
    jobs: Jobs, control_plane: ControlPlane, tmp_path: Path
) -> AsyncIterator[tuple[Operator, Operator]]:
    """An operator that leads, and one that stands by."""
    kubeconfig = await account(
        jobs.client, control_plane.kubeconfig(), jobs.namespace, tmp_path, "namespaced.yaml"
    )
    flags = (f"--namespace={jobs.namespace}", f"--lock-namespace={jobs.namespace}")
    async with AsyncExitStack() as stack:
        leader, other = (
            Operator(kubeconfig, tmp_path / f"{name}.log", *flags) for name in ("leader", "other")
        )
        await stack.enter_async_context(started(leader))
        await leader.leading()
        await stack.enter_async_context(started(other))
        await until(lambda: _is_ready(other))
        yield leader, other


async def _is_ready(process: Operator) -> bool:
    try:
        return (await process.get("/readyz"))[0] == 200
    except OSError:
        return False


async def _leads(process: Operator) -> bool:
    return "mpi_operator_is_leader 1.0" in (await process.get("/metrics"))[1]


async def _created(process: Operator) -> bool:
    return "mpi_operator_jobs_created_total 1.0" in (await process.get("/metrics"))[1]


async def test_one_works_and_the_other_takes_over_when_it_is_stopped(
    jobs: Jobs, pair: tuple[Operator, Operator]
) -> None:
    leader, other = pair
    assert not await _leads(other)
    await jobs.submit(mpijob("pi"))
    launcher = await jobs.start("pi", workers=2)
    assert await _created(leader)
    assert not await _created(other)
    assert await leader.stop() == 0
    await other.leading(seconds=5)  # it need not wait for the lease to run out
    await jobs.succeed(launcher)
    await jobs.becomes("pi", "Succeeded")
    assert len(await jobs.event_messages("pi", "MPIJobCreated")) == 1


async def test_the_other_takes_over_when_one_is_killed(
    jobs: Jobs, pair: tuple[Operator, Operator]
) -> None:
    leader, other = pair
    await jobs.submit(mpijob("pi"))
    launcher = await jobs.start("pi", workers=2)
    await leader.kill()
    await jobs.succeed(launcher)
    assert not await _leads(other)  # the dead one may not be dead: its lease has to run out
    await jobs.becomes("pi", "Succeeded")
    assert await _leads(other)


async def test_who_loses_the_lease_ends_and_says_why(
    jobs: Jobs, pair: tuple[Operator, Operator]
) -> None:
    leader, _ = pair
    thief = {"spec": {"holderIdentity": "somebody-else"}}
    await jobs.client.patch(LEASES, "mpi-operator", thief, jobs.namespace)
    assert await leader.ended() == 5
    record = leader.records()[-1]
    assert record["exit_code"] == 5
    assert "somebody-else" in record["reason"]
