"""Jobs that start as a whole or not at all, with the real coscheduling scheduler, and for Volcano.

Volcano itself cannot be built here. So its gangs never start, and the tests check what the operator
would tell it.
"""

import json
from collections.abc import Callable, Iterator

import pytest

from devcluster.cluster import Cluster
from mpi_operator.kube.resources import Manifest
from tests.cluster.operator.installation import DEPLOY, Installation
from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import OPEN_MPI, Overrides, one_rank_each, pi
from tests.support import pod_groups
from tests.support.pod_groups import SCHEDULER_PLUGINS, VOLCANO

SCHEDULER = "scheduler-plugins-scheduler"
TOO_MUCH = {"cpu": "1000"}


def _define_volcanos_groups(cluster: Cluster) -> None:
    definition = pod_groups.definition(VOLCANO)
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(definition))
    name = definition["metadata"]["name"]
    cluster.kubectl("wait", "--for=condition=Established", f"crd/{name}", "--timeout=30s")


PREPARATIONS: dict[str, Callable[[Cluster], None]] = {
    SCHEDULER: Cluster.start_scheduler_plugins,
    "volcano": _define_volcanos_groups,
}


@pytest.fixture(scope="module")
def gang_scheduling(
    request: pytest.FixtureRequest, cluster: Cluster, installation: Installation
) -> Iterator[None]:
    """The operator makes groups for one of the schedulers."""
    PREPARATIONS[request.param](cluster)
    cluster.kubectl("apply", "-f", str(DEPLOY / "rbac" / "gang-scheduling.yaml"))
    with installation.flags(f"--gang-scheduling={request.param}"):
        yield


COSCHEDULED = pytest.mark.parametrize("gang_scheduling", [SCHEDULER], indirect=True)
FOR_VOLCANO = pytest.mark.parametrize("gang_scheduling", ["volcano"], indirect=True)


@COSCHEDULED
async def test_a_gang_that_cannot_fit_waits_and_starts_when_it_can(
    lab: Lab, gang_scheduling: None
) -> None:
    await lab.submit(pi(runPolicy={"schedulingPolicy": {"minResources": TOO_MUCH}}))
    await lab.eventually("pi", lambda: _waits(lab), 120)

    await lab.change("pi", runPolicy={"schedulingPolicy": {"minResources": None}})

    await lab.succeeds("pi", 150)  # a scheduler that missed the change retries after 50 s
    assert await lab.ranks("pi") == one_rank_each("pi")


@COSCHEDULED
async def test_a_gang_that_fits_starts_together_and_its_group_follows_its_size(
    lab: Lab, cluster: Cluster, gang_scheduling: None
) -> None:
    command = " ".join(OPEN_MPI.command())
    script = f"trap 'exit 1' TERM; until test -e /tmp/go; do sleep 0.2; done; exec {command}"
    await lab.submit(pi(overrides=Overrides(launcher={"command": ["sh", "-c", script]})))
    await lab.eventually("pi", lambda: _runs_with(lab, workers=2), 90)
    assert await _members(lab) == {"pi": 3}

    await lab.scale("pi", 3)
    await lab.eventually("pi", lambda: _runs_with(lab, workers=3), 90)
    assert await _members(lab) == {"pi": 4}
    await lab.scale("pi", 2)
    await lab.eventually("pi", lambda: _runs_with(lab, workers=2))
    assert await _members(lab) == {"pi": 3}

    [launcher] = await lab.pod_names("pi", "launcher")
    cluster.kubectl("exec", "-n", lab.namespace, launcher, "--", "touch", "/tmp/go")
    await lab.succeeds("pi")
    assert await lab.ranks("pi") == one_rank_each("pi")


@FOR_VOLCANO
async def test_a_gang_waits_for_volcano_which_learns_what_it_needs(
    lab: Lab, gang_scheduling: None
) -> None:
    asking = Overrides(worker={"resources": {"requests": {"cpu": "10m"}}})
    policy = {"schedulingPolicy": {"minResources": TOO_MUCH}}
    job = await lab.submit(pi(overrides=asking, runPolicy=policy))
    await lab.eventually("pi", lambda: _are_pending(lab))

    pods = await lab.pods("pi")
    assert {pod["spec"]["schedulerName"] for pod in pods} == {"volcano"}
    marks = [pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] for pod in pods]
    assert set(marks) == {"pi"}
    group = await lab.client.get(VOLCANO, "pi", lab.namespace)
    assert group["spec"] == {"minMember": 3, "minResources": TOO_MUCH, "queue": "default"}
    [owner] = group["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"]) == (job["metadata"]["uid"], True)

    await lab.change("pi", runPolicy={"schedulingPolicy": {"minResources": None}})

    await lab.eventually("pi", lambda: _wants(lab, {"cpu": "20m"}))  # what the pods ask for
    assert await _are_pending(lab)


async def _runs_with(lab: Lab, *, workers: int) -> bool:
    """Whether so many workers and the launcher run, all of them placed as members of the gang."""
    pods = await lab.all_pods("pi")
    return len(pods) == 1 + workers and all(
        pod["status"]["phase"] == "Running"
        and pod["spec"]["schedulerName"] == SCHEDULER
        and pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] == "pi"
        for pod in pods
    )


async def _members(lab: Lab) -> dict[str, int]:
    """All groups of the namespace, and how many pods each has to start together."""
    groups = (await lab.client.list(SCHEDULER_PLUGINS, lab.namespace)).items
    return {each["metadata"]["name"]: each["spec"]["minMember"] for each in groups}


async def _waits(lab: Lab) -> bool:
    """All pods are there and have no node, and the job says so."""
    is_reported = await lab.has_condition("pi", "Running", "False", "Unschedulable")
    return is_reported and await _are_pending(lab)


async def _are_pending(lab: Lab) -> bool:
    """All pods are there and have no node."""
    pods = await lab.pods("pi")
    placed = [pod for pod in pods if pod["spec"].get("nodeName")]
    return len(pods) == 3 and not placed and {p["status"]["phase"] for p in pods} == {"Pending"}


async def _wants(lab: Lab, amounts: Manifest) -> bool:
    """Whether the PodGroup asks Volcano for these resources."""
    group = await lab.client.get(VOLCANO, "pi", lab.namespace)
    return bool(group["spec"].get("minResources") == amounts)
