"""What pods need before there are any: the Service, the ConfigMap, the keys, the PodGroup."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from mpi_operator.api import names
from mpi_operator.build import config_map, pod_group, service
from mpi_operator.build.settings import Settings
from mpi_operator.kube.resources import CONFIG_MAPS, SERVICES, Manifest

from . import pod_state, replacement
from .actions import Action, Create, CreateKeys, patch
from .cached_types import Pod
from .events import JobEvent
from .observed import Observed
from .replacement import Counts

# A pod that is not started for so long may lack the Secret; nodes tell that in events only.
_SUSPICIOUS = timedelta(minutes=1)
_LOOK_AT_KEYS_AGAIN = timedelta(minutes=5)


def service_actions(seen: Observed) -> Iterator[Action]:
    """Create the Service, or set right what of it is ours."""
    wanted = service.service(seen.job)
    if seen.service is None:
        if not seen.is_taken("Service", names.service(seen.job)):
            yield Create(SERVICES, wanted)
    elif service.service_differs(seen.service.builtins, seen.job):
        spec = wanted["spec"]
        selector = changes(seen.service.spec.selector, spec["selector"])
        yield patch(SERVICES, seen.service, {"spec": {**spec, "selector": selector}})


def config_map_actions(
    seen: Observed,
    settings: Settings,
    hosts: Iterable[int],
    counts: Counts,
    events: tuple[JobEvent, ...] = (),
) -> Iterator[Action]:
    """Create the ConfigMap, or write it if anything in it is not as it should be."""
    notes = replacement.as_annotation(counts)
    wanted = config_map.config_map(seen.job, hosts, settings, notes)
    stored = seen.config_map
    known = replacement.stored_counts(stored)
    if stored is None:
        if not seen.is_taken("ConfigMap", names.config_map(seen.job)):
            yield Create(CONFIG_MAPS, wanted, events)
    elif stored.data != wanted["data"] or counts != known:
        change = {
            "metadata": {"annotations": changes(replacement.as_annotation(known), notes)},
            "data": changes(stored.data, wanted["data"]),
        }
        yield patch(CONFIG_MAPS, stored, change, events)


def key_actions(seen: Observed, now: datetime) -> Iterator[Action]:
    """Make keys before the first pods, and look after them when pods do not start.

    The Secret is not watched, so where there are pods it is taken to be there.
    """
    if _may_lack_keys(seen, now):
        yield CreateKeys(seen.job)


def pod_group_actions(seen: Observed, settings: Settings) -> Iterator[Action]:
    """Create the PodGroup, or keep it as the job wants it."""
    if not settings.gang_scheduler:
        return
    resource = pod_group.resource(settings)
    # A group that counts a launcher which waits for the group would wait for ever.
    waits = seen.job.spec.launcher_waits and seen.job.spec.worker_count > 0
    with_launcher = not waits or seen.launcher_is_under_way
    wanted = pod_group.pod_group(seen.job, settings, seen.priorities, with_launcher=with_launcher)
    if seen.pod_group is None:
        if not seen.is_taken("PodGroup", names.pod_group(seen.job)):
            yield Create(resource, wanted)
    elif pod_group.needs_update(seen.pod_group.spec, wanted):
        correction = pod_group.correction(seen.pod_group.spec, wanted)
        yield patch(resource, seen.pod_group, {"spec": correction})


def changes(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> Manifest:
    """A merge patch that leaves what is wanted and nothing else."""
    gone = {name: None for name in stored if name not in wanted}
    return gone | {name: value for name, value in wanted.items() if stored.get(name) != value}


def time_to_check_keys(seen: Observed, now: datetime) -> timedelta | None:
    """In how long a pod that does not start would make us look after the keys."""
    starting = [
        pod_state.age(pod, now) for pod in _all_pods(seen) if pod_state.is_being_started(pod)
    ]
    if not starting:
        return None
    checked = seen.keys_checked
    wait = max(
        _SUSPICIOUS - max(starting),
        checked + _LOOK_AT_KEYS_AGAIN - now if checked else timedelta(0),
    )
    return wait if wait > timedelta(0) else _LOOK_AT_KEYS_AGAIN


def _may_lack_keys(seen: Observed, now: datetime) -> bool:
    pods = _all_pods(seen)
    if seen.launcher is None and not pods:
        return seen.keys_checked is None
    is_slow = any(
        pod_state.is_being_started(pod) and pod_state.age(pod, now) >= _SUSPICIOUS for pod in pods
    )
    checked = seen.keys_checked
    return is_slow and (checked is None or now - checked >= _LOOK_AT_KEYS_AGAIN)


def _all_pods(seen: Observed) -> tuple[Pod, ...]:
    return (*seen.worker_pods, *seen.launcher_pods)
