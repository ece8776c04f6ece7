"""Objects as other programs write them: null is absent, and what cannot be read is reported."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_operator.controller.cached_types import (
    MPI_JOBS,
    PRIORITY_CLASSES,
    LauncherJob,
    PriorityClass,
    StoredConfigMap,
    StoredJob,
    StoredPodGroup,
    StoredService,
)
from mpi_operator.kube.cache import Cache
from mpi_operator.kube.objects import Object, Pod
from mpi_operator.kube.resources import CONFIG_MAPS, JOBS, PODS, SERVICES, Key, Resource
from mpi_operator.local.times import timestamp
from tests.support.observations import NOW, a_manifest, complete, terminated
from tests.support.worlds import message_of, running_world

LAUNCHER = Key("lab", "pi-launcher")
GROUPS = Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup")
TIME = timestamp(NOW)
METADATA = {
    "name": "x",
    "namespace": "lab",
    "uid": "u",
    "resourceVersion": "7",
    "generation": 1,
    "labels": {"a": "b"},
    "annotations": {"c": "d"},
    "creationTimestamp": TIME,
    "deletionTimestamp": TIME,
    "ownerReferences": [
        {"apiVersion": "v1", "kind": "Job", "name": "j", "uid": "v", "controller": True}
    ],
}
CONDITION = {
    "type": "Ready",
    "status": "True",
    "reason": "r",
    "message": "m",
    "lastTransitionTime": TIME,
    "lastProbeTime": TIME,
}
CONTAINER = terminated(1, "words")[0] | {
    "ready": True,
    "restartCount": 1,
    "lastState": {
        "terminated": {"exitCode": 1, "finishedAt": TIME},
        "running": {"startedAt": TIME},
    },
}
OBJECTS: list[tuple[Resource, type[Object], dict[str, Any]]] = [
    (
        PODS,
        Pod,
        {
            "spec": {"nodeName": "n"},
            "status": {
                "phase": "Running",
                "startTime": TIME,
                "podIP": "10.0.0.1",
                "conditions": [CONDITION],
                "containerStatuses": [CONTAINER],
                "initContainerStatuses": [CONTAINER],
            },
        },
    ),
    (
        JOBS,
        LauncherJob,
        {
            "spec": {"suspend": False},
            "status": {
                "active": 1,
                "failed": 0,
                "startTime": TIME,
                "completionTime": TIME,
                "conditions": [CONDITION],
            },
        },
    ),
    (
        SERVICES,
        StoredService,
        {"spec": {"selector": {"a": "b"}, "publishNotReadyAddresses": True}},
    ),
    (CONFIG_MAPS, StoredConfigMap, {"data": {"hostfile": "x"}}),
    (GROUPS, StoredPodGroup, {"spec": {"minMember": 2}}),
    (PRIORITY_CLASSES, PriorityClass, {"value": 7}),
    (MPI_JOBS, StoredJob, {"spec": a_manifest(2)["spec"], "status": {"conditions": [CONDITION]}}),
]
NEEDED = {("metadata",), ("metadata", "name"), ("metadata", "resourceVersion")}


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every field and item of an object but those that identify it."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for name, each in inner:
        if (*path, name) not in NEEDED:
            yield *path, name
        if isinstance(each, dict | list):
            yield from paths(each, (*path, name))


def changed(manifest: Any, path: tuple[Any, ...], how: str) -> Any:
    new = copy.deepcopy(manifest)
    place = new
    for name in path[:-1]:
        place = place[name]
    if how == "missing":
        del place[path[-1]]
    elif how == "null":
        place[path[-1]] = None
    elif isinstance(place[path[-1]], str):
        place[path[-1]] = "SomethingNew"
    return new


@pytest.mark.parametrize(
    ("resource", "kind", "rest"), OBJECTS, ids=[str(each[0]) for each in OBJECTS]
)
@given(data=st.data())
def test_a_field_that_is_null_missing_or_unknown_leaves_an_object_readable(
    resource, kind, rest, data
):
    manifest = {"metadata": METADATA, **rest}
    path = data.draw(st.sampled_from(list(paths(manifest))))
    how = data.draw(st.sampled_from(["null", "missing", "unknown"]))
    cache = Cache(resource, kind)
    cache.saw(msgspec.Raw(json.dumps(changed(manifest, path, how)).encode()))
    assert len(cache.store) == 1
    assert cache.unreadable == {}


def test_a_launcher_whose_times_are_null_ends_its_job():
    world = running_world()
    done = complete()
    for condition in done["conditions"]:
        condition["lastTransitionTime"] = None
    world.cluster.set_status(JOBS, LAUNCHER, done | {"startTime": None})
    world.settle()
    assert world.conditions["Succeeded"] == "True MPIJobSucceeded"


def test_an_object_that_cannot_be_read_is_reported_and_nothing_is_changed():
    world = running_world()
    status = world.cluster.get(JOBS, LAUNCHER)["status"]
    world.cluster.set_status(JOBS, LAUNCHER, status | {"active": "many"})
    world.settle()
    assert "Job pi-launcher is malformed" in message_of(world, "Running")
    assert world.events.reasons[-1] == "MalformedObject"
    assert world.cluster.get(JOBS, LAUNCHER)["status"]["active"] == "many"
    world.cluster.set_status(JOBS, LAUNCHER, status)
    world.settle()
    assert "malformed" not in message_of(world, "Running")
