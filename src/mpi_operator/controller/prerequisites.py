"""What pods need before they are created: the Service, the ConfigMap, the keys, the PodGroup.

Where the launcher uses exec, a permission takes the place of the keys.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from mpi_operator.api import names
from mpi_operator.api.launcher_transport import uses_exec
from mpi_operator.build import config_map, exec_shell, pod_group, scripts, service
from mpi_operator.build.hostfile import hostfile
from mpi_operator.build.settings import Settings
from mpi_operator.kube.resources import CONFIG_MAPS, SERVICES, Manifest

from . import pod_state
from .actions import Action, Create, CreateKeys, GrantExec, patch
from .cached_types import StoredConfigMap
from .decision import Decision
from .events import JobEvent
from .job_record import JobRecord, stored_record
from .observed import Observed
from .pinned_profile import pins

# A pod that has not started after this time may lack the Secret; nodes report that only in events.
_SUSPICIOUS = timedelta(minutes=1)
_CHECK_KEYS_AGAIN = timedelta(minutes=5)


def service_actions(seen: Observed) -> Iterator[Action]:
    """Create the Service, or correct the fields that the operator owns."""
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
    record: JobRecord,
    events: tuple[JobEvent, ...] = (),
) -> Iterator[Action]:
    """Create the ConfigMap, or patch it if it differs from what it should contain."""
    recorded, pin = record.annotations(), pins(seen.job)
    notes = {**recorded, **pin}
    wanted = config_map.config_map(seen.job, hosts, settings, notes, seen.worker_indexes)
    stored = seen.config_map
    if stored is None:
        if not seen.is_taken("ConfigMap", names.config_map(seen.job)):
            yield Create(CONFIG_MAPS, wanted, events)
        return
    known = stored_record(stored).annotations()
    data = {**wanted["data"], **_kept(seen, stored)}
    if stored.data != data or recorded != known:
        change = {
            "metadata": {"annotations": {**changes(known, recorded), **pin}},
            "data": changes(stored.data, data),
        }
        yield patch(CONFIG_MAPS, stored, change, events)


def _kept(seen: Observed, stored: StoredConfigMap) -> Mapping[str, str]:
    """What must not change: our script needs our client, and a bare launcher has a kubectl."""
    has_other_client = seen.bare_launcher is not None and scripts.KUBEXEC in stored.data
    return {scripts.KUBEXEC: stored.data[scripts.KUBEXEC]} if has_other_client else {}


def ensure_keys(seen: Observed, now: datetime) -> Decision:
    """Create the keys before the first pods, and check them when a pod does not start.

    The Secret is not watched, so where there are pods it is assumed to exist.
    """
    return Decision() if uses_exec(seen.job) else _ensure(seen, CreateKeys(seen.job), now)


def ensure_exec(seen: Observed, settings: Settings, now: datetime) -> Decision:
    """Let the launcher exec into its workers, before the hostfile lists them.

    What gives it the permission is not watched either. But a hostfile that is stored with the
    script that uses the permission proves that its hosts were permitted.
    """
    if settings.is_local or not uses_exec(seen.job):
        return Decision()
    is_bare = seen.bare_launcher is not None
    if is_bare and seen.config_map is None:
        return Decision()  # another operator's, which has to be adopted first
    grant = GrantExec(seen.job, seen.worker_indexes, by_kubectl=is_bare)
    stored = seen.config_map.data if seen.config_map else {}
    wanted = {config_map.HOSTFILE: hostfile(seen.job, settings, seen.worker_indexes)}
    if not is_bare:
        wanted |= {scripts.KUBEXEC: exec_shell.scripts_of(seen.job)[scripts.KUBEXEC]}
    if not wanted.items() <= stored.items():
        return Decision((grant,))
    return _ensure(seen, grant, now)


def _ensure(seen: Observed, action: Action, now: datetime) -> Decision:
    pods, checked = (*seen.worker_pods, *seen.launcher_pods), seen.state.keys_checked
    if seen.launcher is None and not pods:
        return Decision((action,) if checked is None else ())
    ages = [pod_state.age(pod, now) for pod in pods if pod_state.is_being_started(pod)]
    if not ages:
        return Decision()
    wait = max(
        _SUSPICIOUS - max(ages),
        checked + _CHECK_KEYS_AGAIN - now if checked else timedelta(0),
    )
    if wait > timedelta(0):
        return Decision(requeue_after=wait)
    return Decision((action,), requeue_after=_CHECK_KEYS_AGAIN)


def pod_group_actions(seen: Observed, settings: Settings) -> Iterator[Action]:
    """Create the PodGroup, or update it."""
    if not settings.gang_scheduler:
        return
    resource = pod_group.resource(settings)
    # A launcher that waits for the workers must not count, or the group would wait forever.
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
    """The merge patch that turns `stored` into `wanted`."""
    gone = {name: None for name in stored if name not in wanted}
    return gone | {name: value for name, value in wanted.items() if stored.get(name) != value}
