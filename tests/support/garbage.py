"""Jobs with anything in them, as a server without rules would store them (hypothesis)."""

import copy
from collections.abc import Iterator
from typing import Any, TypeAlias

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from mpi_operator.kube.resources import Manifest
from tests.support.mpijobs import mpijob, template

Keys: TypeAlias = tuple[str | int, ...]

_TIME = "2026-01-31T12:00:00Z"
_PREFIX = "mpi-operator.kubeflow.org/"
_TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
_NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([2**31 - 1, 2**31, 2**53, 2**63 - 1, 2**63, -(2**63), 10**30]),
    st.floats(allow_nan=False, allow_infinity=False),
)
_SCALARS = st.one_of(st.none(), st.booleans(), _NUMBERS, _TEXT, st.just("x" * 5000))
ANYTHING = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_TEXT, inner, max_size=3)),
    max_leaves=6,
)


def _full_spec() -> Manifest:
    """A legal spec that has nearly every field."""
    pod = {**template(), "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}
    container = pod["spec"]["containers"][0]
    container |= {
        "command": ["mpirun"],
        "env": [{"name": "A", "value": "1"}],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        "resources": {"limits": {"cpu": "1"}, "requests": {"memory": "1Gi"}},
    }
    pod["spec"] |= {
        "volumes": [{"name": "v", "emptyDir": {}}],
        "nodeSelector": {"n": "s"},
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "dnsConfig": {"searches": ["example.com"]},
    }
    replica = {"replicas": 1, "restartPolicy": "Never", "template": pod}
    policy = {
        "cleanPodPolicy": "Running",
        "ttlSecondsAfterFinished": 100,
        "activeDeadlineSeconds": 100,
        "backoffLimit": 2,
        "suspend": False,
        "schedulingPolicy": {"minAvailable": 1, "queue": "q", "minResources": {"cpu": "1"}},
    }
    return {
        "mpiReplicaSpecs": {"Launcher": replica, "Worker": copy.deepcopy(replica)},
        "slotsPerWorker": 1,
        "runLauncherAsWorker": False,
        "sshAuthMountPath": "/root/.ssh",
        "launcherCreationPolicy": "AtStartup",
        "mpiImplementation": "OpenMPI",
        "runPolicy": policy,
    }


def _full_status() -> Manifest:
    """A legal status of a job that is being created."""
    condition = {
        "type": "Created",
        "status": "True",
        "reason": "MPIJobCreated",
        "message": "it is created",
        "lastUpdateTime": _TIME,
        "lastTransitionTime": _TIME,
    }
    counts = {"active": 0, "succeeded": 0, "failed": 0}
    return {
        "conditions": [condition],
        "replicaStatuses": {"Launcher": dict(counts), "Worker": dict(counts)},
        "startTime": _TIME,
        "observedGeneration": 1,
        "selector": "a=b",
    }


def _places(value: Any, keys: Keys = ()) -> Iterator[Keys]:
    """Every part of a value."""
    yield keys
    items = enumerate(value) if isinstance(value, list) else ()
    for key, inner in value.items() if isinstance(value, dict) else items:
        yield from _places(inner, (*keys, key))


def _spoilt(value: Any, keys: Keys, by: Any) -> Any:
    """A copy with one part exchanged, where there is such a part."""
    if not keys:
        return by
    spoilt = copy.copy(value)
    try:
        spoilt[keys[0]] = _spoilt(value[keys[0]], keys[1:], by)
    except (KeyError, IndexError, TypeError):
        return value  # it was in a part that is exchanged already
    return spoilt


@st.composite
def _damaged(draw: st.DrawFn, whole: Any) -> Any:
    places = st.sampled_from(sorted(_places(whole), key=str))
    for place in draw(st.lists(places, min_size=1, max_size=3)):
        whole = _spoilt(whole, place, draw(ANYTHING))
    return whole


SPECS = st.one_of(_damaged(_full_spec()), _damaged(_full_spec()), ANYTHING)
STATUSES = st.one_of(_damaged(_full_status()), _damaged(_full_status()), ANYTHING)
ANNOTATIONS = st.dictionaries(
    st.sampled_from(
        [
            _PREFIX + name
            for name in ("max-worker-replacements", "force-delete-lost-workers", "ttl-deletes-job")
        ]
    ),
    st.one_of(_TEXT, st.sampled_from(["true", "9" * 400, "-1", "\u0663"])),
)
# Valid names of objects that are no valid host names.
NAMES = st.sampled_from(["a" * 253, "a.b.c", "0", "9-lives", "x" * 60, "a" + ".b" * 100])


@st.composite
def jobs(draw: st.DrawFn) -> Manifest:
    """A job of which at least one part is anything."""
    job = mpijob("job")
    job["metadata"]["annotations"] = draw(ANNOTATIONS)
    job["spec"] = draw(st.one_of(st.just(_full_spec()), SPECS, SPECS))
    job["status"] = draw(st.one_of(st.just({}), STATUSES))
    return job


def healthy_with_status(status: Any) -> Manifest:
    """A job where only the status is wrong."""
    return {**mpijob("job"), "status": status}


def examples(strategy: st.SearchStrategy[Any], count: int) -> list[Any]:
    """So many different examples at once, where trying them one by one would take too long."""
    found: list[Any] = []

    @settings(
        max_examples=count,
        phases=[Phase.generate],
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(example: Any) -> None:
        found.append(example)

    collect()
    return found
