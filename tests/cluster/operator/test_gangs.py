"""Jobs that start as a whole or not at all, with the real coscheduling scheduler."""

from collections.abc import Iterator

import pytest

from devcluster.cluster import Cluster
from mpi_operator.kube.resources import Resource
from tests.cluster.operator.installation import DEPLOY, Installation
from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import one_rank_each, pi

SCHEDULER = "scheduler-plugins-scheduler"
POD_GROUPS = Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup")
TOO_MUCH = {"cpu": "1000"}


@pytest.fixture(scope="module", autouse=True)
def gang_scheduling(cluster: Cluster, installation: Installation) -> Iterator[None]:
    cluster.start_scheduler_plugins()
    cluster.kubectl("apply", "-f", str(DEPLOY / "rbac" / "gang-scheduling.yaml"))
    with installation.flags(f"--gang-scheduling={SCHEDULER}"):
        yield


async def test_a_gang_that_cannot_fit_waits_and_starts_when_it_can(lab: Lab) -> None:
    await lab.submit(pi(runPolicy={"schedulingPolicy": {"minResources": TOO_MUCH}}))
    await lab.eventually("pi", lambda: _waits(lab), 120)

    await lab.change("pi", runPolicy={"schedulingPolicy": {"minResources": None}})

    await lab.succeeds("pi", 150)  # a scheduler that missed the change looks again after 50 s
    assert await lab.ranks("pi") == one_rank_each("pi")


async def test_a_gang_that_fits_starts_together(lab: Lab) -> None:
    await lab.submit(pi())
    await lab.eventually("pi", lambda: _has_group(lab))
    group = await lab.client.get(POD_GROUPS, "pi", lab.namespace)  # it goes with the job's end

    await lab.succeeds("pi")

    assert await lab.ranks("pi") == one_rank_each("pi")
    assert group["spec"]["minMember"] == 3
    pods = await lab.pods("pi")
    assert {pod["spec"]["schedulerName"] for pod in pods} == {SCHEDULER}
    assert {pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] for pod in pods} == {"pi"}


async def _has_group(lab: Lab) -> bool:
    return await lab.find(POD_GROUPS, "pi") is not None


async def _waits(lab: Lab) -> bool:
    """All pods are there and have no node, and the job says so."""
    pods = await lab.pods("pi")
    waiting = [pod for pod in pods if pod["status"].get("phase") == "Pending"]
    is_told = await lab.has_condition("pi", "Running", "False", "Unschedulable")
    return len(pods) == len(waiting) == 3 and is_told
