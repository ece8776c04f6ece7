"""Names that a job needs and a stranger has. Nothing of a stranger is ever touched."""

import asyncio

import pytest

from mpi_operator.kube.client import DeleteOptions
from mpi_operator.kube.resources import (
    CONFIG_MAPS,
    JOBS,
    PODS,
    SECRETS,
    SERVICES,
    Manifest,
    Resource,
)
from tests.support.jobs import Jobs
from tests.support.mpijobs import mpijob, template
from tests.support.waiting import until

_LABELS = {
    "training.kubeflow.org/operator-name": "mpi-operator",
    "training.kubeflow.org/job-role": "worker",
}

_STRANGERS: list[tuple[Resource, str, Manifest]] = [
    (SERVICES, "", {"spec": {"ports": [{"port": 80}]}}),
    (CONFIG_MAPS, "-config", {"data": {"mine": "yes"}}),
    (SECRETS, "-ssh", {"stringData": {"mine": "yes"}}),
    (PODS, "-worker-1", template()),
    (JOBS, "-launcher", {"spec": {"suspend": True, "template": template(restartPolicy="Never")}}),
]


@pytest.mark.parametrize("is_labelled", [False, True], ids=["plain", "labelled like ours"])
async def test_an_object_of_another_owner_is_not_changed_and_the_job_continues_without_it(
    shared: Jobs, is_labelled: bool
) -> None:
    # All at once, because each takes seconds: a Service, a ConfigMap, a Secret, a pod and a Job.
    async with asyncio.TaskGroup() as group:
        for resource, suffix, content in _STRANGERS:
            job = f"taken-{resource.kind.lower()}-{is_labelled}".lower()
            group.create_task(_meet(shared, job, resource, job + suffix, content, is_labelled))


async def _meet(
    jobs: Jobs, job: str, resource: Resource, name: str, content: Manifest, is_labelled: bool
) -> None:
    labels = _LABELS | {"training.kubeflow.org/job-name": job} if is_labelled else {}
    metadata = {"name": name, "namespace": jobs.namespace, "labels": labels}
    before = await jobs.client.create(resource, {"metadata": metadata, **content})

    await jobs.submit(mpijob(job))
    await jobs.becomes(job, "Running", "False", "ErrResourceExists")
    [message] = await jobs.event_messages(job, "ErrResourceExists")
    assert name in message
    assert resource.kind in message
    condition = await jobs.condition(job, "Running")
    assert condition is not None
    assert condition["message"] == message
    assert await jobs.condition(job, "Failed") is None
    after = await jobs.client.get(resource, name, jobs.namespace)
    assert _without_status(after) == _without_status(before)

    await jobs.client.delete(resource, name, jobs.namespace, DeleteOptions(grace_period_seconds=0))
    await jobs.finish(job, workers=2)


def _without_status(found: Manifest) -> Manifest:
    """What the operator must not touch. Kubernetes' own controllers write the rest."""
    volatile = ("resourceVersion", "managedFields")
    metadata = {k: v for k, v in found["metadata"].items() if k not in volatile}
    return {**{k: v for k, v in found.items() if k != "status"}, "metadata": metadata}


async def test_clean_up_keeps_a_pod_of_another_owner(shared: Jobs) -> None:
    """Its labels are those of a worker, and its name is that of one of a formerly larger job."""
    labels = _LABELS | {"training.kubeflow.org/job-name": "polite"}
    metadata = {"name": "polite-worker-7", "namespace": shared.namespace, "labels": labels}
    await shared.client.create(PODS, {"metadata": metadata, **template()})
    await shared.submit(mpijob("polite", runPolicy={"cleanPodPolicy": "All"}))
    await until(lambda: shared.has_workers("polite", 3))
    await shared.run("polite-worker-0", "polite-worker-1", await shared.launcher_pod("polite"))
    await shared.becomes("polite", "Running")
    [launcher] = await shared.pod_names("polite", "launcher")
    await shared.succeed(launcher)
    await shared.becomes("polite", "Succeeded")
    await shared.gone(PODS, "polite-worker-0")
    await shared.gone(PODS, "polite-worker-1")
    assert await shared.pod_names("polite", "worker") == ["polite-worker-7"]
