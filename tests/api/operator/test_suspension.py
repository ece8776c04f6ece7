"""Jobs that are suspended and resumed, by people and by Kueue."""

from datetime import UTC, datetime
from typing import Any

from mpi_operator.kube.resources import CONFIG_MAPS, JOBS, SECRETS, SERVICES, Manifest
from tests.support.jobs import Jobs
from tests.support.mpijobs import mpijob
from tests.support.waiting import until

_GPU_NODES = {"flavor": "gpu", "zone": "a"}
_TOLERATION = {"key": "reserved", "operator": "Exists", "effect": "NoSchedule"}
_GATE = {"name": "kueue.x-k8s.io/topology"}


def _admitted(labels: Manifest, annotations: Manifest, **directives: Any) -> Manifest:
    """What Kueue writes into a job that it lets run."""
    template = {"metadata": {"labels": labels, "annotations": annotations}, "spec": directives}
    roles = {"Launcher": {"template": template}, "Worker": {"template": template}}
    return {"runPolicy": {"suspend": False}, "mpiReplicaSpecs": roles}


async def _has_no_active_pods(jobs: Jobs, job: str) -> bool:
    """What Kueue waits for before it gives the quota to others."""
    replicas = (await jobs.status(job))["replicaStatuses"]
    return all(replica.get("active", 0) == 0 for replica in replicas.values())


async def _suspend(jobs: Jobs, job: str) -> None:
    await jobs.suspend(job)
    await jobs.becomes(job, "Suspended")
    await until(lambda: jobs.has_workers(job, 0))
    await until(lambda: _has_no_active_pods(jobs, job))
    await until(lambda: _has_no_launcher_pods(jobs, job))


async def _has_no_launcher_pods(jobs: Jobs, job: str) -> bool:
    return not await jobs.pods(job, "launcher")


async def test_a_job_that_is_created_suspended_has_everything_but_pods(shared: Jobs) -> None:
    await shared.submit(mpijob("born-asleep", runPolicy={"suspend": True}))
    await shared.becomes("born-asleep", "Suspended", reason="MPIJobSuspended")
    await until(lambda: _has_launcher_job(shared, "born-asleep"))
    for resource, name in (
        (SERVICES, "born-asleep"),
        (CONFIG_MAPS, "born-asleep-config"),
        (SECRETS, "born-asleep-ssh"),
    ):
        assert await shared.find(resource, name) is not None
    assert (await shared.launcher_job("born-asleep"))["spec"]["suspend"] is True
    assert await shared.pods("born-asleep") == []
    assert "startTime" not in await shared.status("born-asleep")
    assert await shared.event_messages("born-asleep", "MPIJobCreated")
    assert await shared.event_messages("born-asleep", "MPIJobSuspended") == ["MPIJob suspended"]


async def _has_launcher_job(jobs: Jobs, job: str) -> bool:
    return await jobs.find(JOBS, f"{job}-launcher") is not None


async def test_what_kueue_decides_reaches_the_launcher_and_the_workers(shared: Jobs) -> None:
    await shared.submit(mpijob("admitted", runPolicy={"suspend": True}))
    await shared.becomes("admitted", "Suspended")
    admission = _admitted(
        {"kueue.x-k8s.io/podset": "main"},
        {"kueue.x-k8s.io/workload": "admitted"},
        nodeSelector=_GPU_NODES,
        tolerations=[_TOLERATION],
        schedulingGates=[_GATE],
    )
    await shared.change("admitted", **admission)
    await until(lambda: shared.has_workers("admitted", 2))
    assert await shared.event_messages("admitted", "MPIJobResumed") == ["MPIJob resumed"]
    assert await shared.has_condition("admitted", "Suspended", "False", "MPIJobResumed")
    await shared.launcher_pod("admitted")
    template = (await shared.launcher_job("admitted"))["spec"]["template"]
    for pod in (template, *await shared.pods("admitted")):
        assert pod["metadata"]["labels"]["kueue.x-k8s.io/podset"] == "main"
        assert pod["metadata"]["annotations"]["kueue.x-k8s.io/workload"] == "admitted"
        assert pod["spec"]["nodeSelector"] == _GPU_NODES
        assert _TOLERATION in pod["spec"]["tolerations"]
        assert pod["spec"]["schedulingGates"] == [_GATE]


def _is_past(second: str) -> bool:
    """Whether a time that is written down now would be a later one: they are whole seconds."""
    return datetime.now(UTC).replace(microsecond=0) > datetime.fromisoformat(second)


async def test_a_job_is_suspended_and_resumed_twice_while_it_runs(shared: Jobs) -> None:
    await shared.submit(mpijob("again"))
    await shared.start("again", workers=2)
    first = await shared.status("again")

    await _suspend(shared, "again")
    assert await shared.has_condition("again", "Running", "False", "MPIJobSuspended")
    assert (await shared.launcher_job("again"))["spec"]["suspend"] is True
    assert await shared.hosts("again") == []
    await until(lambda: _is_past(first["startTime"]))
    await shared.change("again", **_admitted({"round": "2"}, {}, nodeSelector=_GPU_NODES))
    await shared.start("again", workers=2)
    second = await shared.status("again")
    assert second["startTime"] > first["startTime"]

    await _suspend(shared, "again")
    await until(lambda: _is_past(second["startTime"]))
    # Kueue takes back what it had set, and the next time it chooses other nodes.
    elsewhere = {"flavor": "cpu", "zone": None}
    await shared.change("again", **_admitted({"round": "3"}, {}, nodeSelector=elsewhere))
    launcher = await shared.start("again", workers=2)
    third = await shared.status("again")
    assert third["startTime"] > second["startTime"]
    template = (await shared.launcher_job("again"))["spec"]["template"]
    for pod in (template, *await shared.pods("again")):
        assert pod["spec"]["nodeSelector"] == {"flavor": "cpu"}
        assert pod["metadata"]["labels"]["round"] == "3"

    await shared.succeed(launcher)
    await shared.becomes("again", "Succeeded")


async def test_a_job_that_is_suspended_before_it_ran_is_resumed(shared: Jobs) -> None:
    await shared.submit(mpijob("quick-change"))
    await until(lambda: shared.has_workers("quick-change", 2))
    await _suspend(shared, "quick-change")
    await shared.suspend("quick-change", suspend=False)
    await shared.finish("quick-change", workers=2)


async def test_a_job_resumed_before_its_pods_were_gone_starts_with_new_ones(shared: Jobs) -> None:
    await shared.submit(mpijob("hasty"))
    await shared.start("hasty", workers=2)
    before = {pod["metadata"]["uid"] for pod in await shared.pods("hasty")}
    await shared.suspend("hasty")
    await shared.becomes("hasty", "Suspended")
    await shared.suspend("hasty", suspend=False)
    await until(lambda: _are_all_new(shared, "hasty", before))
    await shared.finish("hasty", workers=2)


async def _are_all_new(jobs: Jobs, job: str, before: set[str]) -> bool:
    pods = await jobs.pods(job)
    return len(pods) == 3 and not before & {pod["metadata"]["uid"] for pod in pods}
