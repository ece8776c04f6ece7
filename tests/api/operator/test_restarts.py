"""An operator that starts among hundreds of settled jobs writes nothing."""

import asyncio
import re
from pathlib import Path

import pytest

from devcluster.audit import counted
from devcluster.control_plane import ControlPlane
from mpi_operator.kube.resources import CONFIG_MAPS, JOBS, PODS
from tests.api.conftest import StartControlPlane
from tests.support.audited import AuditLog, new_namespace, service_account
from tests.support.jobs import Jobs
from tests.support.many_jobs import ManyJobs, Node, clone, job, take_names
from tests.support.mirror import mirrored
from tests.support.mpijobs import MPIJOBS
from tests.support.operator import Operator, account, started
from tests.support.waiting import until

_COUNTS = {
    "done": 1,
    "kept": 10,
    "cleaned": 10,
    "running": 40,
    "suspended": 10,
    "hurt": 5,
    "lame": 5,
    "taken": 5,
}
# Copies of the one that is done: running as many jobs would take minutes and show nothing new.
# That a thousand that are not over cost no more is in `benchmarks/operators`.
_CLONES = 414
_ALL = 500
_HOME = "many-jobs"


@pytest.mark.timeout(600)
async def test_an_operator_that_starts_among_hundreds_of_jobs_at_rest_writes_nothing(
    start_control_plane: StartControlPlane, tmp_path: Path
) -> None:
    control_plane = start_control_plane(controller_manager=True, audit=True)
    async with new_namespace(control_plane, _HOME) as crowd:
        await _restart(crowd, control_plane, tmp_path)


async def _restart(crowd: Jobs, control_plane: ControlPlane, tmp_path: Path) -> None:
    client = crowd.client
    assert sum(_COUNTS.values()) + _CLONES == _ALL
    kubeconfig = await account(
        client, control_plane.kubeconfig(), _HOME, tmp_path, "namespaced.yaml"
    )
    flags = (f"--namespace={_HOME}", f"--lock-namespace={_HOME}")
    async with started(Operator(kubeconfig, tmp_path / "operator.log", *flags)) as process:
        await _settle_all(crowd)
        log = AuditLog(control_plane, client)
        await process.stop()
        before = counted(await log.writes(service_account(_HOME)))
        assert before["create events"] > 100  # so they would be seen
        copies = (f"done-{number}" for number in range(1, _CLONES + 1))
        await asyncio.gather(*(clone(crowd, "done-0", copy) for copy in copies))

        await process.start()
        await process.leading()
        await until(lambda: _has_reconciled(process, _ALL))
        await process.stop()
    writes = await log.writes(service_account(_HOME))
    assert [each for each in writes if each.code < 300] == []
    # Services are cached only where they have our label, and Secrets never. So whether a name is
    # still taken by a stranger is asked; the server says no, and nothing has changed. Where looking
    # at all takes longer than the first back-off, some are asked for again.
    asked = counted(writes)
    assert asked.keys() == {"create services (409)", "create secrets (409)"}
    assert all(_COUNTS["taken"] <= count < 3 * _COUNTS["taken"] for count in asked.values())


async def _settle_all(crowd: Jobs) -> None:
    """Let an operator and a node bring all jobs to a state in which they stay."""
    async with mirrored(crowd.client, MPIJOBS, PODS, JOBS, CONFIG_MAPS) as mirror:
        Node(crowd, mirror)
        many_jobs = ManyJobs(mirror, _HOME)
        await take_names(crowd, _COUNTS["taken"])
        jobs = [job(kind, number) for kind, count in _COUNTS.items() for number in range(count)]
        await asyncio.gather(*(crowd.submit(each) for each in jobs))
        await many_jobs.settle((each["metadata"]["name"] for each in jobs), 400)


async def _has_reconciled(process: Operator, jobs: int) -> bool:
    _, metrics = await process.get("/metrics")
    reconciles = _sum(metrics, "mpi_operator_reconcile_duration_seconds_count")
    return reconciles >= jobs and _sum(metrics, "workqueue_depth") == 0


def _sum(metrics: str, name: str) -> float:
    """The sum of all series of a name."""
    return sum(map(float, re.findall(rf"^{name}\{{.*\}} (\S+)$", metrics, re.MULTILINE)))
