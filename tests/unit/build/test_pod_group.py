"""The PodGroup of a job."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_operator.api import MPIJob
from mpi_operator.build.min_resources import min_resources
from mpi_operator.build.pod_group import correction, needs_update, pod_group, resource
from mpi_operator.build.settings import Settings
from mpi_operator.kube.resources import Manifest, Resource
from tests.unit.build.jobs import NONE, PLUGINS, VOLCANO, make_job, pods, without_workers

QUEUE = "scheduling.volcano.sh/queue-name"


def asking(requests: Manifest, priority: str = "", **more: Any) -> Manifest:
    """The spec of a role whose pods ask for something."""
    pod = {"priorityClassName": priority} if priority else {}
    return pods(pod, resources={"requests": requests}) | more


def sized(cpu: int | str, memory: str) -> Manifest:
    return {"cpu": cpu, "memory": memory}


def spec_of(
    job: MPIJob,
    settings: Settings = VOLCANO,
    priorities: dict[str, int] | None = None,
    *,
    with_launcher: bool = True,
) -> Manifest:
    group = pod_group(job, settings, priorities or {}, with_launcher=with_launcher)
    spec: Manifest = group["spec"]
    return spec


POLICY = {
    "minAvailable": 2,
    "queue": "project-x",
    "minResources": {"cpu": 100, "memory": "512Gi"},
    "priorityClass": "high",
    "scheduleTimeoutSeconds": 100,
}
EVERYTHING_SET = make_job(
    annotations={QUEUE: "project-y"},
    launcher=asking(sized("1", "2Gi"), "low"),
    worker=asking(sized("10", "20Gi"), "low"),
    runPolicy={"schedulingPolicy": POLICY},
)
NO_POLICY = make_job(
    annotations={QUEUE: "project-y"},
    launcher=asking(sized("1", "2Gi"), "high"),
    worker=asking(sized(10, "20Gi"), "low", replicas=2),
)
LONE_LAUNCHER = without_workers(runPolicy={"schedulingPolicy": {"minAvailable": 1}})


@pytest.mark.parametrize(
    ("job", "settings", "spec"),
    [
        pytest.param(
            EVERYTHING_SET,
            VOLCANO,
            {
                "minMember": 2,
                "minResources": {"cpu": 100, "memory": "512Gi"},
                "queue": "project-x",
                "priorityClassName": "high",
            },
            id="Volcano, the policy takes precedence",
        ),
        pytest.param(
            EVERYTHING_SET,
            PLUGINS,
            {
                "minMember": 2,
                "minResources": {"cpu": 100, "memory": "512Gi"},
                "scheduleTimeoutSeconds": 100,
            },
            id="scheduler-plugins, the policy takes precedence",
        ),
        pytest.param(
            NO_POLICY,
            VOLCANO,
            {
                "minMember": 3,
                "minResources": {"cpu": "21", "memory": "42Gi"},
                "queue": "project-y",
                "priorityClassName": "high",
            },
            id="Volcano, without a policy all pods start together",
        ),
        pytest.param(
            NO_POLICY,
            PLUGINS,
            {"minMember": 3, "minResources": {"cpu": "21", "memory": "42Gi"}},
            id="scheduler-plugins, without a policy all pods start together",
        ),
        pytest.param(
            LONE_LAUNCHER, VOLCANO, {"minMember": 1}, id="Volcano, a launcher that asks for nothing"
        ),
        pytest.param(
            LONE_LAUNCHER,
            PLUGINS,
            {"minMember": 1},
            id="scheduler-plugins, a launcher that asks for nothing",
        ),
    ],
)
def test_pod_groups(job, settings, spec):
    assert spec_of(job, settings) == spec


def test_the_kind_depends_on_the_scheduler():
    volcano = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
    plugins = Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup")
    assert resource(VOLCANO) == volcano
    assert resource(PLUGINS) == plugins
    group = pod_group(make_job(), PLUGINS, {}, with_launcher=True)
    assert (group["apiVersion"], group["kind"]) == (plugins.api_version, "PodGroup")


def test_without_a_gang_scheduler_there_are_no_pod_groups():
    with pytest.raises(ValueError, match="gang scheduling is off"):
        resource(NONE)


@pytest.mark.parametrize(
    ("policy", "launcher", "worker", "expected"),
    [
        pytest.param("p", "l", "w", "p", id="that of the policy"),
        pytest.param("", "l", "w", "l", id="else that of the launcher"),
        pytest.param("", "", "w", "w", id="else that of the workers"),
        pytest.param("", "", "", None, id="else none"),
    ],
)
def test_the_priority_class_of_a_group(policy, launcher, worker, expected):
    job = make_job(
        launcher=asking({}, launcher),
        worker=asking({}, worker),
        runPolicy={"schedulingPolicy": {"priorityClass": policy}},
    )
    assert spec_of(job).get("priorityClassName") == expected


@pytest.mark.parametrize(
    ("policy", "with_launcher", "members"),
    [
        pytest.param({"minAvailable": 2}, True, 2, id="as many as the policy says"),
        pytest.param({}, True, 100, id="else all workers and the launcher"),
        pytest.param({}, False, 99, id="without a launcher that still waits for the workers"),
        pytest.param({"minAvailable": 2}, False, 2, id="the policy, with or without launcher"),
        pytest.param({"minAvailable": 0}, True, 0, id="none, if the policy says so"),
    ],
)
def test_min_member(policy, with_launcher, members):
    job = make_job(worker={"replicas": 99}, runPolicy={"schedulingPolicy": policy})
    assert spec_of(job, with_launcher=with_launcher)["minMember"] == members


def group_of(members: int | None, launcher: Manifest, worker: Manifest) -> MPIJob:
    return make_job(
        launcher=launcher,
        worker=worker,
        runPolicy={"schedulingPolicy": {} if members is None else {"minAvailable": members}},
    )


TWO_CONTAINERS = {
    "replicas": 3,
    "template": {
        "spec": {
            "containers": [
                {"name": "mpi", "image": "a", "resources": {"requests": sized(50, "500Gi")}},
                {"name": "log", "image": "b", "resources": {"limits": sized(10, "44Gi")}},
            ]
        }
    },
}


@pytest.mark.parametrize("settings", [VOLCANO, PLUGINS], ids=["Volcano", "scheduler-plugins"])
@pytest.mark.parametrize(
    ("job", "priorities", "resources"),
    [
        pytest.param(
            make_job(
                launcher=asking(sized(2, "1Gi")),
                worker=asking(sized(10, "32Gi")),
                runPolicy={"schedulingPolicy": {"minResources": sized("1", "3Gi")}},
            ),
            {},
            sized("1", "3Gi"),
            id="the policy sets the resources",
        ),
        pytest.param(
            group_of(0, asking(sized(2, "1Gi")), asking(sized(10, "32Gi"))),
            {},
            None,
            id="an empty group needs nothing",
        ),
        pytest.param(
            group_of(None, asking(sized(2, "1Gi")), asking(sized(10, "32Gi"), replicas=2)),
            {},
            sized("22", "65Gi"),
            id="without priorities, all of them",
        ),
        pytest.param(
            group_of(3, asking(sized(2, "1Gi")), asking(sized(10, "32Gi"), replicas=100)),
            {},
            sized("22", "65Gi"),
            id="of equals, workers are left out first",
        ),
        pytest.param(
            without_workers(launcher=asking(sized(1, "1Gi")), runPolicy={"schedulingPolicy": {}}),
            {},
            sized("1", "1Gi"),
            id="without workers, the launcher",
        ),
        pytest.param(
            group_of(3, asking(sized(2, "1Gi")), TWO_CONTAINERS),
            {},
            sized("122", "1089Gi"),
            id="all containers of a pod count",
        ),
        pytest.param(
            group_of(
                2, asking(sized(2, "2Gi"), "gone"), asking(sized(5, "16Gi"), "gone", replicas=100)
            ),
            {"low": 1},
            sized("7", "18Gi"),
            id="a priority class that does not exist is none",
        ),
        pytest.param(
            group_of(
                2, asking(sized(2, "4Gi"), "high"), asking(sized(20, "64Gi"), "low", replicas=100)
            ),
            {"low": 10, "high": 100_000},
            sized("22", "68Gi"),
            id="workers of lower priority are left out first",
        ),
        pytest.param(
            group_of(
                2, asking(sized(2, "4Gi"), "low"), asking(sized(20, "64Gi"), "high", replicas=4)
            ),
            {"low": 10, "high": 100_000},
            sized("40", "128Gi"),
            id="a launcher of lower priority is left out first",
        ),
        pytest.param(
            group_of(1, asking(sized(2, "4Gi")), asking(sized(20, "64Gi"), replicas=4)),
            {},
            sized("2", "4Gi"),
            id="of a group of one, the launcher is left",
        ),
        pytest.param(
            group_of(9, asking(sized(2, "4Gi")), asking(sized(20, "64Gi"), replicas=2)),
            {},
            sized("42", "132Gi"),
            id="more members than pods ask for no more than the pods do",
        ),
        pytest.param(
            group_of(
                3, asking(sized(2, "4Gi"), "low"), asking(sized(20, "64Gi"), "sunk", replicas=4)
            ),
            {"low": 0, "sunk": -5},
            sized("42", "132Gi"),
            id="a priority below zero is lower than none",
        ),
    ],
)
def test_min_resources(settings, job, priorities, resources):
    assert spec_of(job, settings, priorities).get("minResources") == resources


@pytest.mark.parametrize(
    ("resources", "total"),
    [
        pytest.param(None, {}, id="null asks for nothing"),
        pytest.param({}, {}, id="nothing is asked for"),
        pytest.param({"requests": {"cpu": "1"}}, {"cpu": "3"}, id="a resource that is new"),
        pytest.param(
            {"requests": {"memory": "1Gi"}, "limits": None}, {"memory": "3Gi"}, id="null limits"
        ),
        pytest.param(
            {"requests": {"cpu": "1"}, "limits": {"cpu": "8"}},
            {"cpu": "3"},
            id="what is requested counts, not the limit",
        ),
        pytest.param(
            {"requests": {"cpu": "1"}, "limits": {"nvidia.com/gpu": 2}},
            {"nvidia.com/gpu": "6", "cpu": "3"},
            id="a limit counts where nothing is requested",
        ),
        pytest.param(
            {"requests": {"cpu": "1e1.5", "memory": "1Gi"}},
            {"memory": "3Gi"},
            id="an invalid quantity does not count",
        ),
    ],
)
def test_the_requests_of_a_container(resources, total):
    job = make_job(worker=pods(resources=resources) | {"replicas": 3})
    assert min_resources(job, 3, {}, with_launcher=False) == total


PRIORITIES = st.sampled_from(["", "low", "high"])


@given(st.integers(0, 9), st.integers(1, 6), PRIORITIES, PRIORITIES, st.booleans())
def test_as_many_pods_are_counted_as_are_members(members, workers, first, second, with_launcher):
    one = {"example.com/pod": 1}
    job = group_of(members, asking(one, first), asking(one, second, replicas=workers))
    found = min_resources(job, members, {"low": -1, "high": 1}, with_launcher=with_launcher)
    there_are = workers + (1 if with_launcher else 0)
    assert int(found.get("example.com/pod", 0)) == min(members, there_are)


WANTED = pod_group(NO_POLICY, VOLCANO, {}, with_launcher=True)
STORED = WANTED["spec"]
BARE = pod_group(make_job(), VOLCANO, {}, with_launcher=True)
TIMED = pod_group(EVERYTHING_SET, PLUGINS, {}, with_launcher=True)


@pytest.mark.parametrize(
    ("stored", "wanted", "needed"),
    [
        pytest.param(STORED, WANTED, False, id="as it should be"),
        pytest.param({**STORED, "minTaskMember": {}}, WANTED, False, id="Volcano added something"),
        pytest.param({**STORED, "minMember": 2}, WANTED, True, id="another size"),
        pytest.param({}, WANTED, True, id="an empty one"),
        pytest.param(
            {**STORED, "minResources": {"cpu": "21000m", "memory": 42 * 2**30}},
            WANTED,
            False,
            id="the same amounts, written differently",
        ),
        pytest.param(
            {**STORED, "minResources": {"cpu": "21"}}, WANTED, True, id="a resource is missing"
        ),
        pytest.param(
            {**STORED, "minResources": {"cpu": "?"}}, WANTED, True, id="an amount is unreadable"
        ),
        pytest.param({**STORED, "queue": "project-z"}, WANTED, True, id="another queue"),
        pytest.param(
            {"minMember": 3, "queue": "default"}, BARE, False, id="Volcano filled in a queue"
        ),
        pytest.param(
            {"minMember": 3, "minResources": {"cpu": "1"}}, BARE, True, id="resources to be removed"
        ),
        pytest.param(
            {"minMember": 3, "priorityClassName": "high"}, BARE, True, id="a priority to be removed"
        ),
        pytest.param(
            {"minMember": 3, "scheduleTimeoutSeconds": 0},
            BARE,
            False,
            id="upstream's timeout of 0 is none",
        ),
        pytest.param(TIMED["spec"], TIMED, False, id="a timeout that stays"),
        pytest.param(
            {**TIMED["spec"], "scheduleTimeoutSeconds": 5}, TIMED, True, id="another timeout"
        ),
    ],
)
def test_when_a_stored_group_needs_an_update(stored, wanted, needed):
    assert needs_update(stored, wanted) is needed


def test_a_correction_sets_what_is_wanted_and_removes_what_is_not() -> None:
    job = make_job(runPolicy={"schedulingPolicy": {"minResources": {"cpu": "2"}}})
    wanted = pod_group(job, VOLCANO, {}, with_launcher=True)
    stored = {
        "minMember": 9,
        "minResources": {"cpu": "1", "memory": "1Gi"},
        "priorityClassName": "high",
        "queue": "default",  # filled in by the scheduler
        "minTaskMember": {"worker": 1},  # nothing of ours
    }
    assert correction(stored, wanted) == {
        "minMember": 3,
        "minResources": {"cpu": "2", "memory": None},
        "priorityClassName": None,
    }


def test_the_group_leaves_out_a_launcher_that_waits() -> None:
    job = make_job(runPolicy={"schedulingPolicy": {"minAvailable": 3}})
    group = pod_group(job, VOLCANO, {}, with_launcher=False)
    assert group["spec"]["minMember"] == 2
