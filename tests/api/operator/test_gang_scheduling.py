"""PodGroups, by which Volcano or the coscheduling plugin starts a job as a whole."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from devcluster.control_plane import ControlPlane
from mpi_operator.kube import config, errors
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import Manifest, Resource
from tests.api.operator.conftest import StartOperator, new_namespace
from tests.support import pod_groups
from tests.support.jobs import Jobs
from tests.support.mpijobs import mpijob, template
from tests.support.operator import account, allow, operator
from tests.support.pod_groups import SCHEDULER_PLUGINS, VOLCANO
from tests.support.waiting import until

_ROLES = ("namespaced.yaml", "gang-scheduling.yaml")
_SCHEDULERS = ("volcano", "coscheduler")
_TESTS = 8  # as many as each has, and a few more
BOTH = pytest.mark.parametrize(
    ("scheduler", "resource"),
    [
        pytest.param("volcano", VOLCANO, id="volcano"),
        pytest.param("coscheduler", SCHEDULER_PLUGINS, id="scheduler-plugins"),
    ],
)
ONLY_VOLCANO = pytest.mark.parametrize(
    ("scheduler", "resource"), [("volcano", VOLCANO)], ids=["volcano"]
)


@pytest.fixture(scope="module", autouse=True)
def pod_group_kinds(control_plane: ControlPlane) -> None:
    """Both kinds, installed. An operator that makes none does not mind."""

    async def install() -> None:
        async with HttpClient(config.load(kubeconfig=control_plane.kubeconfig())) as client:
            await pod_groups.install(client)

    asyncio.run(install())


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def gang_namespaces(
    control_plane: ControlPlane, pod_group_kinds: None, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[dict[str, list[str]]]:
    """By scheduler, namespaces in which an operator makes groups for it; each for one test."""
    admin = control_plane.kubeconfig()
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(HttpClient(config.load(kubeconfig=admin)))
        found = {}
        for scheduler in _SCHEDULERS:
            home, *others = found[scheduler] = [await new_namespace(client) for _ in range(_TESTS)]
            flags = (f"--namespace={','.join(others)}", f"--gang-scheduling={scheduler}")
            for namespace in others:
                await allow(client, namespace, home, *_ROLES)
            directory = tmp_path_factory.mktemp(scheduler)
            await stack.enter_async_context(
                operator(client, admin, home, directory, *flags, roles=_ROLES)
            )
        yield found


@pytest.fixture
def jobs(client: HttpClient, gang_namespaces: dict[str, list[str]], scheduler: str) -> Jobs:
    """Jobs in a namespace whose operator makes groups for this scheduler."""
    return Jobs(client, gang_namespaces[scheduler].pop())


def _sized() -> Manifest:
    """A job of which each pod asks for something."""
    return mpijob(
        "pi",
        launcher={"template": _asking("1", "2Gi")},
        worker={"replicas": 2, "template": _asking("10", "20Gi")},
    )


def _asking(cpu: str, memory: str) -> Manifest:
    requests = {"cpu": cpu, "memory": memory}
    container = {"name": "mpi", "image": "example.com/mpi:1", "resources": {"requests": requests}}
    return template(containers=[container])


async def _group(jobs: Jobs, resource: Resource) -> dict[str, Any]:
    found = await jobs.client.get(resource, "pi", jobs.namespace)
    spec: dict[str, Any] = found["spec"]
    return spec


async def _becomes(jobs: Jobs, resource: Resource, fact: Callable[[dict[str, Any]], bool]) -> None:
    async def is_so() -> bool:
        return fact(await _group(jobs, resource))

    await until(is_so)


@BOTH
async def test_a_group_is_there_before_the_pods_and_gone_after_the_end(
    jobs: Jobs, scheduler: str, resource: Resource
) -> None:
    job = _sized()
    job["spec"]["runPolicy"] = {"cleanPodPolicy": "None"}
    submitted = await jobs.submit(job)
    launcher = await jobs.start("pi", workers=2)
    group = await jobs.client.get(resource, "pi", jobs.namespace)
    assert group["spec"]["minMember"] == 3
    assert group["spec"]["minResources"] == {"cpu": "21", "memory": "42Gi"}
    assert group["metadata"]["ownerReferences"][0]["uid"] == submitted["metadata"]["uid"]
    pods = await jobs.pods("pi")
    created = [pod["metadata"]["creationTimestamp"] for pod in pods]
    assert group["metadata"]["creationTimestamp"] <= min(created)
    assert {pod["spec"]["schedulerName"] for pod in pods} == {scheduler}
    assert {_mark(pod, resource) for pod in pods} == {"pi"}

    await jobs.succeed(launcher)
    await jobs.becomes("pi", "Succeeded")
    await jobs.gone(resource, "pi")
    assert await jobs.has_workers("pi", 2)


def _mark(pod: Manifest, resource: Resource) -> str:
    """What tells a scheduler to which group a pod belongs."""
    metadata = pod["metadata"]
    if resource == VOLCANO:
        return str(metadata["annotations"]["scheduling.k8s.io/group-name"])
    return str(metadata["labels"]["scheduling.x-k8s.io/pod-group"])


@BOTH
async def test_a_suspended_job_has_no_group(jobs: Jobs, resource: Resource) -> None:
    job = _sized()
    job["spec"]["runPolicy"] = {"suspend": True}
    await jobs.submit(job)
    await jobs.becomes("pi", "Suspended")
    assert await jobs.find(resource, "pi") is None
    await jobs.suspend("pi", suspend=False)
    await jobs.start("pi", workers=2)
    assert await jobs.find(resource, "pi") is not None
    await jobs.suspend("pi")
    await jobs.gone(resource, "pi")
    await jobs.suspend("pi", suspend=False)
    await jobs.finish("pi", workers=2)


@BOTH
async def test_a_launcher_that_waits_for_the_workers_is_not_counted_until_it_is_there(
    jobs: Jobs, resource: Resource
) -> None:
    job = _sized()
    job["spec"]["launcherCreationPolicy"] = "WaitForWorkersReady"
    await jobs.submit(job)
    await until(lambda: jobs.has_workers("pi", 2))
    group = await _group(jobs, resource)
    assert group["minMember"] == 2
    assert group["minResources"] == {"cpu": "20", "memory": "40Gi"}
    await jobs.start("pi", workers=2)
    await _becomes(jobs, resource, lambda group: group["minMember"] == 3)
    assert (await _group(jobs, resource))["minResources"] == {"cpu": "21", "memory": "42Gi"}


@ONLY_VOLCANO
async def test_changes_of_size_and_queue_reach_volcano(jobs: Jobs, resource: Resource) -> None:
    await jobs.submit(_sized())
    await until(lambda: jobs.has_workers("pi", 2))
    assert (await _group(jobs, resource))["queue"] == "default"
    await jobs.change("pi", runPolicy={"schedulingPolicy": {"minAvailable": 2, "queue": "night"}})
    await _becomes(jobs, resource, lambda group: group["queue"] == "night")
    group = await _group(jobs, resource)
    assert group["minMember"] == 2
    assert group["minResources"] == {"cpu": "11", "memory": "22Gi"}
    await jobs.change("pi", runPolicy={"schedulingPolicy": None})
    await jobs.scale("pi", 3)
    await _becomes(jobs, resource, lambda group: group["minMember"] == 4)


@pytest.mark.parametrize(
    ("scheduler", "resource"), [("coscheduler", SCHEDULER_PLUGINS)], ids=["scheduler-plugins"]
)
async def test_a_change_of_the_timeout_reaches_scheduler_plugins(
    jobs: Jobs, resource: Resource
) -> None:
    await jobs.submit(_sized())
    await until(lambda: jobs.has_workers("pi", 2))
    await jobs.change("pi", runPolicy={"schedulingPolicy": {"scheduleTimeoutSeconds": 40}})
    await _becomes(jobs, resource, lambda group: group.get("scheduleTimeoutSeconds") == 40)
    await jobs.change("pi", runPolicy={"schedulingPolicy": {"scheduleTimeoutSeconds": 50}})
    await _becomes(jobs, resource, lambda group: group.get("scheduleTimeoutSeconds") == 50)


@BOTH
async def test_a_group_of_another_owner_is_not_changed(jobs: Jobs, resource: Resource) -> None:
    stranger = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": "pi", "namespace": jobs.namespace},
        "spec": {"minMember": 9},
    }
    await jobs.client.create(resource, stranger)
    await jobs.submit(_sized())
    await jobs.becomes("pi", "Running", "False", "ErrResourceExists")
    assert await jobs.event_messages("pi", "ErrResourceExists") == [
        'Resource "pi" of Kind "PodGroup" already exists and is not managed by MPIJob'
    ]
    assert (await _group(jobs, resource))["minMember"] == 9
    assert await jobs.pods("pi") == []
    await jobs.client.delete(resource, "pi", jobs.namespace)
    await jobs.finish("pi", workers=2)


async def test_without_the_flag_groups_are_neither_read_nor_permitted(
    client: HttpClient,
    namespace: str,
    start_operator: StartOperator,
    control_plane: ControlPlane,
    tmp_path: Path,
) -> None:
    await start_operator()  # it would end where something that it watches is forbidden
    jobs = Jobs(client, namespace)
    await jobs.submit(_sized())
    await jobs.finish("pi", workers=2)
    pod = (await jobs.launcher_job("pi"))["spec"]["template"]["spec"]
    assert pod["schedulerName"] == "default-scheduler"
    kubeconfig = await account(
        client, control_plane.kubeconfig(), namespace, tmp_path, "namespaced.yaml"
    )
    async with HttpClient(config.load(kubeconfig=kubeconfig)) as insider:
        for resource in (VOLCANO, SCHEDULER_PLUGINS):
            with pytest.raises(errors.Forbidden):
                await insider.list(resource, namespace)
