"""What pods are given for their start, on a real API server, and starts that take too long."""

import asyncio
from typing import Any

from mpi_operator.api.annotations import INIT_TIMEOUT
from mpi_operator.build import scripts
from mpi_operator.build.scripts import Event
from mpi_operator.kube.resources import CONFIG_MAPS, Manifest
from tests.support.jobs import Jobs
from tests.support.mpijobs import MPIJOBS, mpijob, template
from tests.support.observations import remote_shell_line
from tests.support.waiting import until


def _hurried(name: str, within: str, **spec: Any) -> Manifest:
    """A job that has to start within a time."""
    job = mpijob(name, **spec)
    job["metadata"]["annotations"] = {INIT_TIMEOUT: within}
    return job


def _unschedulable() -> list[Manifest]:
    reason = {"reason": "Unschedulable", "message": "0/3 nodes are available"}
    return [{"type": "PodScheduled", "status": "False", **reason}]


async def _has_scripts(jobs: Jobs, job: str) -> bool:
    stored = await jobs.find(CONFIG_MAPS, f"{job}-config")
    data = (stored or {}).get("data", {})
    return all(data.get(name) == scripts.text(name) for name in scripts.NAMES)


async def test_a_start_that_takes_too_long_fails_and_says_who_is_missing(shared: Jobs) -> None:
    await shared.submit(_hurried("too-late", "10s", runPolicy={"cleanPodPolicy": "All"}))
    await until(lambda: shared.has_workers("too-late", 2))
    await shared.run("too-late-worker-0")
    await shared.set_status("too-late-worker-1", phase="Pending", conditions=_unschedulable())
    await shared.becomes("too-late", "Failed", reason="InitTimeout")
    failed = await shared.condition("too-late", "Failed")
    assert failed is not None
    assert "too-late-worker-1" in failed["message"]
    assert "too-late-worker-0" not in failed["message"]
    assert await shared.event_messages("too-late", "InitTimeout") == [failed["message"]]
    await until(lambda: shared.has_workers("too-late", 0))
    assert (await shared.launcher_job("too-late"))["spec"]["suspend"] is True


async def test_a_job_that_has_started_has_all_the_time(shared: Jobs) -> None:
    await shared.submit(_hurried("in-time", "10m"))
    launcher = await shared.start("in-time", workers=2)
    await shared.client.patch(
        MPIJOBS, "in-time", {"metadata": {"annotations": {INIT_TIMEOUT: "1s"}}}, shared.namespace
    )
    await asyncio.sleep(1.5)
    await shared.submit(mpijob("after-in-time"))
    await shared.finish("after-in-time", workers=2)  # so the operator has had time to fail it
    assert await shared.condition("in-time", "Failed") is None
    await shared.succeed(launcher)
    await shared.becomes("in-time", "Succeeded")


async def test_a_launcher_that_timed_out_on_a_worker_is_retried_with_a_delay(
    shared: Jobs,
) -> None:
    await shared.submit(_hurried("refused", "10m"))
    launcher = await shared.start("refused", workers=2)
    line = remote_shell_line(
        Event.GAVE_UP, "refused-worker-1", seconds=2, cause="Connection refused"
    )
    await shared.fail(launcher, message=line)
    await shared.becomes("refused", "Failed", reason="InitTimeout")
    failed = await shared.condition("refused", "Failed")
    assert failed is not None
    assert "refused-worker-1" in failed["message"]
    assert "Connection refused" in failed["message"]


async def test_workers_on_the_network_of_their_nodes_are_taken_with_their_ports(
    shared: Jobs,
) -> None:
    worker = {"template": template(hostNetwork=True)}
    await shared.submit(mpijob("on-nodes", worker=worker))
    await until(lambda: shared.has_workers("on-nodes", 2))
    pods = await shared.pods("on-nodes", "worker")
    ports = {pod["spec"]["containers"][0]["ports"][0]["hostPort"] for pod in pods}
    assert len(ports) == 2
    assert all(20000 <= port < 30000 for port in ports)


async def test_a_config_map_of_an_older_operator_gets_the_scripts_before_there_are_pods(
    shared: Jobs,
) -> None:
    await shared.submit(mpijob("older", runPolicy={"suspend": True}))
    await shared.becomes("older", "Suspended")
    gone: Manifest = {"data": dict.fromkeys(scripts.NAMES)}
    await shared.client.patch(CONFIG_MAPS, "older-config", gone, shared.namespace)
    await until(lambda: _has_scripts(shared, "older"))
    await shared.suspend("older", suspend=False)
    await shared.finish("older", 2)
    await shared.becomes("older", "Succeeded")
