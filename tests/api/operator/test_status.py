"""What the status promises to those who read it: Kueue, Flyte, dashboards, people."""

from contextlib import aclosing
from datetime import datetime, timedelta

from mpi_operator.kube.client import WatchOptions
from mpi_operator.kube.resources import JOBS
from tests.support.jobs import Jobs
from tests.support.mpijobs import MPIJOBS, mpijob
from tests.support.waiting import until


def _times(condition: dict[str, str]) -> list[datetime]:
    fields = ("lastTransitionTime", "lastUpdateTime")
    return [datetime.fromisoformat(condition[field]) for field in fields]


async def test_the_first_status_says_when_the_job_began(shared: Jobs) -> None:
    created = await shared.submit(mpijob("first-status"))
    changes = shared.client.watch(
        MPIJOBS,
        shared.namespace,
        WatchOptions(
            fields="metadata.name=first-status",
            resource_version=created["metadata"]["resourceVersion"],
        ),
    )
    async with aclosing(changes):
        status = (await anext(changes)).object["status"]
    assert "startTime" in status
    [condition] = status["conditions"]
    assert (condition["type"], condition["status"]) == ("Created", "True")
    assert f"{shared.namespace}/first-status" in condition["message"]
    assert status["observedGeneration"] == 1


async def test_the_end_is_the_last_and_by_a_second_the_newest_condition(shared: Jobs) -> None:
    """Flyte takes the newest true condition, of two of one second the first; others the last."""
    await shared.submit(mpijob("ended"))
    await shared.finish("ended", workers=2)
    status = await shared.status("ended")
    *others, last = status["conditions"]
    assert (last["type"], last["status"]) == ("Succeeded", "True")
    for condition in others:
        assert max(_times(condition)) + timedelta(seconds=1) <= min(_times(last))
    assert [each["type"] for each in others] == ["Created", "Running"]
    running = others[1]
    assert running["status"] == "False"
    assert max(_times(running)) <= datetime.fromisoformat(status["completionTime"])


async def test_there_is_never_an_end_that_is_not_true(shared: Jobs) -> None:
    """Flyte takes the mere presence of such a condition for the end."""
    await shared.submit(mpijob("no-false-end", runPolicy={"backoffLimit": 0}))
    await shared.fail(await shared.start("no-false-end", workers=2))
    await shared.becomes("no-false-end", "Failed")
    types = [each["type"] for each in (await shared.status("no-false-end"))["conditions"]]
    assert types == ["Created", "Running", "Failed"]


async def test_a_job_that_ended_before_it_was_seen_to_run_says_so(shared: Jobs) -> None:
    await shared.submit(mpijob("too-quick"))
    await until(lambda: shared.has_workers("too-quick", 2))
    await shared.succeed(await shared.launcher_pod("too-quick"))
    await shared.becomes("too-quick", "Succeeded")
    running = await shared.condition("too-quick", "Running")
    assert running is not None
    assert running["status"] == "False"
    completed = datetime.fromisoformat((await shared.status("too-quick"))["completionTime"])
    assert max(_times(running)) <= completed


async def test_of_a_launcher_that_succeeded_nothing_else_is_counted(shared: Jobs) -> None:
    """MultiKueue compares with `{succeeded: 1}`; zeros are left out when Go reads them."""
    await shared.submit(mpijob("counted"))
    await shared.finish("counted", workers=2)
    launcher = (await shared.status("counted"))["replicaStatuses"]["Launcher"]
    assert {name: count for name, count in launcher.items() if count} == {"succeeded": 1}
    assert set(launcher) <= {"active", "failed", "succeeded"}


async def test_a_changed_spec_is_acknowledged(shared: Jobs) -> None:
    await shared.submit(mpijob("edited"))
    await shared.start("edited", workers=2)
    edited = await shared.change("edited", slotsPerWorker=4)
    assert edited["metadata"]["generation"] == 2
    await shared.observes("edited", 2)
    hosts = await shared.hosts("edited")
    assert [host.rpartition(":")[2] for host in hosts] == ["4", "4"]


async def test_nothing_is_written_when_nothing_changes(shared: Jobs) -> None:
    await shared.submit(mpijob("still"))
    await shared.start("still", workers=2)
    await until(lambda: _has_settled(shared, "still"))
    before = await shared.job("still")
    # An event without consequences: the operator reconciles and writes nothing.
    note = {"metadata": {"annotations": {"seen": "yes"}}}
    await shared.client.patch(JOBS, "still-launcher", note, shared.namespace)
    await shared.submit(mpijob("after-still"))
    await shared.finish("after-still", workers=2)
    assert await shared.job("still") == before


async def _has_settled(jobs: Jobs, job: str) -> bool:
    replicas = (await jobs.status(job))["replicaStatuses"]
    active = [replicas[role].get("active") for role in ("Launcher", "Worker")]
    return active == [1, 2]


async def test_the_life_of_a_job_is_reported_in_events_once(shared: Jobs) -> None:
    await shared.submit(mpijob("storied"))
    await shared.finish("storied", workers=2)
    await shared.event_messages("storied", "MPIJobSucceeded")
    assert sorted(reason for reason, _ in await shared.events("storied")) == [
        "MPIJobCreated",
        "MPIJobRunning",
        "MPIJobSucceeded",
    ]


async def test_a_restart_policy_in_the_template_is_overridden_and_that_is_reported(
    shared: Jobs,
) -> None:
    job = mpijob("overridden")
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["restartPolicy"] = "Always"
    await shared.submit(job)
    assert len(await shared.event_messages("overridden", "SetPodTemplateRestartPolicy")) == 1
    pod = (await shared.launcher_job("overridden"))["spec"]["template"]["spec"]
    assert pod["restartPolicy"] != "Always"
