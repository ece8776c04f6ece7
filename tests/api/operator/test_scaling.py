"""Jobs that become larger and smaller while they run."""

import pytest

from mpi_operator.kube.client import Selector
from mpi_operator.kube.resources import CONFIG_MAPS, PODS, Manifest
from tests.support.jobs import Jobs
from tests.support.mpijobs import MPIJOBS, mpijob
from tests.support.waiting import until


async def _prints(jobs: Jobs, job: str, pods: list[str]) -> bool:
    hosts = [f"{pod}.{job}.{jobs.namespace}.svc:1" for pod in pods]
    return await jobs.hosts(job) == hosts


async def _hostfile(jobs: Jobs, job: str) -> list[str]:
    found = await jobs.client.get(CONFIG_MAPS, f"{job}-config", jobs.namespace)
    return [line.partition(".")[0] for line in found["data"]["hostfile"].splitlines()]


@pytest.mark.parametrize("launcher_works", [False, True], ids=["plain", "launcher as worker"])
async def test_a_job_grows_and_shrinks_and_other_pods_stay(
    shared: Jobs, launcher_works: bool
) -> None:
    job = f"elastic-{launcher_works}".lower()
    first = [f"{job}-launcher"] if launcher_works else []
    await shared.submit(mpijob(job, runLauncherAsWorker=launcher_works))
    await shared.start(job, workers=2)
    workers = [f"{job}-worker-{index}" for index in range(4)]
    uids = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in await shared.pods(job)}

    await shared.scale(job, 4)
    await shared.start_workers(job, 4)
    await until(lambda: _prints(shared, job, [*first, *workers]))
    assert await _hostfile(shared, job) == [*first, *workers]

    await shared.scale(job, 2)
    await until(lambda: shared.has_workers(job, 2))
    await until(lambda: _prints(shared, job, [*first, *workers[:2]]))
    assert await _hostfile(shared, job) == [*first, *workers[:2]]
    now = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in await shared.pods(job)}
    assert now == uids

    await shared.succeed(*await shared.pod_names(job, "launcher"))
    await shared.becomes(job, "Succeeded")


async def test_a_job_whose_launcher_works_shrinks_to_the_launcher_alone(shared: Jobs) -> None:
    await shared.submit(mpijob("lonely", runLauncherAsWorker=True))
    await shared.start("lonely", workers=2)
    await shared.scale("lonely", 0)
    await until(lambda: shared.has_workers("lonely", 0))
    await until(lambda: _prints(shared, "lonely", ["lonely-launcher"]))
    await shared.succeed(*await shared.pod_names("lonely", "launcher"))
    await shared.becomes("lonely", "Succeeded")


async def test_hosts_are_sorted_by_number(shared: Jobs) -> None:
    await shared.submit(mpijob("dozen", worker={"replicas": 12}))
    await shared.start("dozen", workers=12)
    workers = [f"dozen-worker-{index}" for index in range(12)]
    await until(lambda: _prints(shared, "dozen", workers))
    assert await _hostfile(shared, "dozen") == workers


async def test_the_scale_subresource_has_the_number_of_workers_and_their_selector(
    shared: Jobs,
) -> None:
    await shared.submit(mpijob("scaled", worker={"replicas": 3}))
    await until(lambda: shared.has_workers("scaled", 3))
    await shared.run("scaled-worker-0", "scaled-worker-1")

    async def are_two_active() -> bool:
        return bool((await _scale(shared, "scaled"))["status"]["replicas"] == 2)

    await until(are_two_active)
    scale = await _scale(shared, "scaled")
    assert scale["spec"]["replicas"] == 3
    found = await shared.client.list(
        PODS, shared.namespace, Selector(labels=scale["status"]["selector"])
    )
    names = sorted(pod["metadata"]["name"] for pod in found.items)
    assert names == ["scaled-worker-0", "scaled-worker-1", "scaled-worker-2"]


async def _scale(jobs: Jobs, job: str) -> Manifest:
    return await jobs.client.get(MPIJOBS, job, jobs.namespace, subresource="scale")


async def test_pods_of_a_formerly_larger_job_are_cleaned_up_with_the_others(
    shared: Jobs,
) -> None:
    await shared.submit(mpijob("was-larger", worker={"replicas": 3}))
    launcher = await shared.start("was-larger", workers=3)
    held = {"metadata": {"finalizers": ["example.com/held"]}}
    await shared.client.patch(PODS, "was-larger-worker-2", held, shared.namespace)
    # One write that makes the job smaller and one that ends it, with nothing in between.
    await shared.succeed(launcher)
    policy = {"cleanPodPolicy": "All"}
    roles = {"Worker": {"replicas": 1}}
    await shared.change("was-larger", mpiReplicaSpecs=roles, runPolicy=policy)
    await shared.becomes("was-larger", "Succeeded")
    await until(lambda: shared.has_workers("was-larger", 0))
    free = {"metadata": {"finalizers": None}}
    await shared.client.patch(PODS, "was-larger-worker-2", free, shared.namespace)
    await shared.gone(PODS, "was-larger-worker-2")
