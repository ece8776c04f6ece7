"""A launcher that lost a worker and exited with 0 is tried again."""

from mpi_operator.api.annotations import LOST_WORKERS
from mpi_operator.kube.client import DeleteOptions
from mpi_operator.kube.resources import JOBS, PODS, Manifest
from tests.support.jobs import Jobs
from tests.support.mpijobs import MPIJOBS, mpijob
from tests.support.waiting import until


def _needs_all(name: str, **policy: object) -> Manifest:
    """A job that needs every worker."""
    job = mpijob(name, runPolicy=policy)
    job["metadata"]["annotations"] = {LOST_WORKERS: "fail"}
    return job


async def _lose_a_worker(jobs: Jobs, name: str) -> str:
    """The job runs, its launcher loses a worker, and exits with 0; the pod that did."""
    launcher = await jobs.start(name, workers=2)
    await jobs.delete_now(f"{name}-worker-1")
    await until(lambda: jobs.has_event(name, "WorkerReplaced"))
    await jobs.succeed(launcher)
    return launcher


async def _next_pod(jobs: Jobs, name: str, *former: str) -> str:
    """Let the workers run; the pod of the next launcher, which runs, too."""
    await jobs.start_workers(name, 2)

    async def is_there() -> bool:
        return len(await jobs.pods(name, "launcher")) > len(former)

    await until(is_there)
    [pod] = set(await jobs.pod_names(name, "launcher")) - set(former)
    await jobs.run(pod)
    return pod


async def test_it_is_tried_again_when_the_worker_is_back(shared: Jobs) -> None:
    await shared.submit(_needs_all("tried-again", backoffLimit=2))
    first = await _lose_a_worker(shared, "tried-again")
    await shared.gone(JOBS, "tried-again-launcher")
    [message] = await shared.event_messages("tried-again", "LauncherRestarted")
    assert message.startswith("Launcher will be restarted (1 of 2) ")
    assert [each["type"] for each in (await shared.status("tried-again"))["conditions"]] == [
        "Created",
        "Running",
    ]
    second = await _next_pod(shared, "tried-again", first)
    assert (await shared.launcher_job("tried-again"))["spec"]["backoffLimit"] == 1
    await shared.succeed(second)
    await shared.becomes("tried-again", "Succeeded")
    replicas = (await shared.status("tried-again"))["replicaStatuses"]
    assert replicas["Launcher"] == {"active": 0, "failed": 0, "succeeded": 1}
    assert len(await shared.event_messages("tried-again", "LauncherRestarted")) == 1


async def test_the_pod_of_the_first_try_stays_until_its_job_goes(shared: Jobs) -> None:
    job = await shared.submit(_needs_all("kept"))
    first = await _lose_a_worker(shared, "kept")
    await shared.gone(JOBS, "kept-launcher")
    second = await _next_pod(shared, "kept", first)
    kept = await shared.client.get(PODS, first, shared.namespace)
    assert kept["status"]["phase"] == "Succeeded"
    assert "finalizers" not in kept["metadata"]
    [owner] = kept["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("MPIJob", job["metadata"]["uid"])
    await shared.succeed(second)
    await shared.becomes("kept", "Succeeded")
    await shared.client.delete(MPIJOBS, "kept", shared.namespace, DeleteOptions())
    await shared.gone(PODS, first)
    await shared.gone(PODS, second)


async def test_it_fails_where_it_has_no_tries_left(shared: Jobs) -> None:
    await shared.submit(_needs_all("once", backoffLimit=1))
    first = await _lose_a_worker(shared, "once")
    second = await _next_pod(shared, "once", first)
    await shared.delete_now("once-worker-0")
    await shared.succeed(second)
    await shared.becomes("once", "Failed", reason="WorkerLost")


async def test_a_job_that_was_suspended_has_all_of_its_tries_again(shared: Jobs) -> None:
    await shared.submit(_needs_all("fresh", backoffLimit=3, activeDeadlineSeconds=600))
    first = await _lose_a_worker(shared, "fresh")
    await _next_pod(shared, "fresh", first)
    spec = (await shared.launcher_job("fresh"))["spec"]
    assert spec["backoffLimit"] == 2
    assert spec["activeDeadlineSeconds"] < 600

    await shared.suspend("fresh")
    await shared.becomes("fresh", "Suspended")
    await until(lambda: shared.has_workers("fresh", 0))
    await shared.suspend("fresh", False)

    await _next_pod(shared, "fresh", first)
    spec = (await shared.launcher_job("fresh"))["spec"]
    assert (spec["backoffLimit"], spec["activeDeadlineSeconds"]) == (3, 600)
