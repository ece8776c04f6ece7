"""Jobs full of garbage: their status says so, and no reconcile fails."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpi_operator.controller.cached_types import MPI_JOBS
from tests.support.observations import VOLCANO, a_manifest
from tests.support.worlds import World, running_world

GARBAGE = settings(max_examples=100)
# What happens to a launcher, and the condition that must follow.
ENDS = {
    "launcher_runs": {"Created"},
    "launcher_completes": {"Succeeded"},
    "launcher_fails": {"Failed"},
}

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**33), 2**33),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(["1Gi", "Never", "2026-03-01T12:00:00Z", "9999-12-31T23:59:59Z", "None"]),
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)
RICH = a_manifest(
    2,
    policy={
        "cleanPodPolicy": "All",
        "ttlSecondsAfterFinished": 5,
        "schedulingPolicy": {"minAvailable": 1, "minResources": {"cpu": "1"}, "queue": "q"},
        "suspend": False,
    },
    status={
        "conditions": [
            {
                "type": "Running",
                "status": "True",
                "reason": "MPIJobRunning",
                "lastTransitionTime": "2026-03-01T11:00:00Z",
                "lastUpdateTime": "2026-03-01T11:00:00Z",
            },
            {"type": "Suspended", "status": "False"},
        ],
        "replicaStatuses": {"Worker": {"active": 1}, "Launcher": {"active": 1}},
        "startTime": "2026-03-01T11:00:00Z",
        "observedGeneration": 1,
    },
    worker={
        "restartPolicy": "Never",
        "template": {
            "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
            "spec": {
                "containers": [
                    {
                        "name": "mpi",
                        "image": "i",
                        "env": [{"name": "A", "value": "b"}],
                        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                        "resources": {"limits": {"cpu": "1"}, "requests": {"memory": "1Gi"}},
                    }
                ],
                "volumes": [{"name": "v", "emptyDir": {}}],
                "dnsConfig": {"searches": ["x"]},
                "nodeSelector": {"k": "v"},
                "tolerations": [{"key": "k"}],
            },
        },
    },
)


def paths(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a manifest."""
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return [above] * bool(above) + [p for k, v in inner for p in paths(v, (*above, k))]


PLACES = [
    path
    for path in paths(RICH)
    if path[0] in ("spec", "status") and path[-1] not in ("type", "status")
]


@st.composite
def garbled(draw):
    manifest = json.loads(json.dumps(RICH))
    for path in draw(st.lists(st.sampled_from(PLACES), min_size=1, max_size=3)):
        put(manifest, path, draw(values))
    return manifest


def put(manifest, path, value):
    *parents, last = path
    inner = manifest
    for key in parents:
        inner = inner[key] if has(inner, key) else {}
    if has(inner, last):
        inner[last] = value


def has(inner, key):
    if isinstance(inner, list):
        return isinstance(key, int) and key < len(inner)
    return isinstance(inner, dict) and key in inner


@GARBAGE
@given(garbled(), st.sampled_from(list(ENDS)))
def test_garbage_is_reported_and_stops_no_launcher(manifest, event):
    world = running_world(settings=VOLCANO, rules=False)
    world.cluster.replace(MPI_JOBS, world.manifest | {"spec": manifest["spec"]})
    world.cluster.set_status(MPI_JOBS, world.key, manifest["status"])
    getattr(world, event)()
    world.settle()
    assert world.observe() is None or ENDS[event] <= set(world.conditions)


@GARBAGE
@given(garbled())
def test_garbage_from_the_start(manifest):
    world = World(settings=VOLCANO, rules=False)
    world.cluster.replace(MPI_JOBS, world.manifest | {"spec": manifest["spec"]})
    world.cluster.set_status(MPI_JOBS, world.key, manifest["status"])
    world.settle()
    assert world.observe() is None or world.manifest["status"]["conditions"]


@pytest.mark.parametrize("field", ["type", "status"])
def test_a_condition_with_garbage_in_a_required_field(field):
    world = World(rules=False)
    garbage = {"conditions": [{"type": "Created", "status": "True", field: []}]}
    world.cluster.set_status(MPI_JOBS, world.key, garbage)
    world.settle()
    assert world.conditions["Created"] == "True MPIJobCreated"
