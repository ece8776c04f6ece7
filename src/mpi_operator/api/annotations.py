"""Annotations: settings and state beyond the fields of v2beta1.

They are not new fields because typed clients drop unknown fields when they write a job back.
"""

import re
from collections.abc import Mapping
from datetime import timedelta

PREFIX = "mpi-operator.kubeflow.org/"

# On a job, set by its author.
MAX_WORKER_REPLACEMENTS = PREFIX + "max-worker-replacements"
FORCE_DELETE_LOST_WORKERS = PREFIX + "force-delete-lost-workers"
TTL_DELETES_JOB = PREFIX + "ttl-deletes-job"
INIT_TIMEOUT = PREFIX + "init-timeout"
SCALE_DOWN_DELAY = PREFIX + "scale-down-delay"
LOST_WORKERS = PREFIX + "lost-workers"
TRANSPORT = PREFIX + "transport"
MAIN_CONTAINER = PREFIX + "main-container"
LAUNCHER_RESTART_POLICY = PREFIX + "launcher-restart-policy"
WORKER_RESTART_POLICY = PREFIX + "worker-restart-policy"

# On a job, set by the conversion between API versions (docs/decisions/0006-api-versions.md).
WRITTEN_IN = PREFIX + "written-in"
CONVERTED_FIELDS = PREFIX + "converted-fields"
CONVERSION_ERROR = PREFIX + "conversion-error"
UNITS_PER_NODE = PREFIX + "processing-units-per-node"

# On the ConfigMap of a job: what the operator has to remember across restarts.
WORKER_REPLACEMENTS = PREFIX + "worker-replacements"
LAUNCHER_LAST_FAILURE = PREFIX + "launcher-last-failure"
LAUNCHER_RETRIES = PREFIX + "launcher-retries"
PROFILE = PREFIX + "profile"
HOSTS_CHANGED = PREFIX + "hosts-changed"
WORKERS_LEAVING = PREFIX + "workers-leaving"

# On the pod of a launcher, set by the operator.
HOSTS_ANNOUNCED = PREFIX + "hosts-announced"

# On a worker pod, set by its owner: which one leaves first when a job shrinks. Kubernetes' own.
POD_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"

# Values of LOST_WORKERS.
FAIL, SURVIVE = "fail", "survive"

# Values of TRANSPORT.
SSH, EXEC = "ssh", "exec"

# Values of the restart policies: those that the field `restartPolicy` does not have.
ALWAYS, EXIT_CODE = "Always", "ExitCode"
RESTART_POLICIES: Mapping[str, tuple[str, ...]] = {
    LAUNCHER_RESTART_POLICY: (EXIT_CODE,),  # a Job's pods cannot be restarted always
    WORKER_RESTART_POLICY: (ALWAYS, EXIT_CODE),
}
FIRST_RETRYABLE = 128
"""With `ExitCode`, the first exit code that is retried. Lower ones are final."""

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PART = r"([0-9]{1,9}(?:[.][0-9]{1,9})?)(h|ms|m|s)"
_DURATION = re.compile(f"(?:{_PART})+")
_COST = re.compile("[-+]?[0-9]{1,10}")
_LONGEST = 365 * 86_400  # seconds; effectively no limit


def is_on(annotations: Mapping[str, str], name: str) -> bool:
    """Whether a switch is "true". Nothing else counts, because a switch may delete things."""
    return annotations.get(name, "").strip().lower() == "true"


def number(annotations: Mapping[str, str], name: str) -> int | None:
    """The value as a number; None if it is missing or not a number."""
    text = annotations.get(name, "").strip()
    return int(text) if text.isdecimal() and len(text) < 10 else None


def lost_workers(annotations: Mapping[str, str]) -> str:
    """FAIL or SURVIVE: what losing workers means for a job; empty if the job does not say."""
    text = annotations.get(LOST_WORKERS, "").strip().lower()
    return text if text in (FAIL, SURVIVE) else ""


def transport(annotations: Mapping[str, str]) -> str:
    """SSH or EXEC: how a launcher reaches its workers; empty if the job does not say."""
    text = annotations.get(TRANSPORT, "").strip().lower()
    return text if text in (SSH, EXEC) else ""


def restart_policy(annotations: Mapping[str, str], name: str) -> str:
    """The restart policy that an annotation chooses; empty if it chooses none."""
    text = annotations.get(name, "").strip()
    return text if text in RESTART_POLICIES[name] else ""


def init_timeout(annotations: Mapping[str, str]) -> timedelta | None:
    """How long the start may take, in seconds or as a Go duration (`1h30m`); at least 1s.

    None means no limit.
    """
    text = annotations.get(INIT_TIMEOUT, "").strip()
    seconds = _seconds(text)
    if seconds is None or seconds <= 0:
        return None
    return timedelta(seconds=min(max(round(seconds), 1), _LONGEST))


def scale_down_delay(annotations: Mapping[str, str]) -> timedelta | None:
    """How long workers that leave still run, written as above; None if the job does not say."""
    seconds = _seconds(annotations.get(SCALE_DOWN_DELAY, "").strip())
    return None if seconds is None else timedelta(seconds=min(seconds, _LONGEST))


def deletion_cost(annotations: Mapping[str, str]) -> int:
    """What it costs to lose a pod: the cheapest goes first. 0 if it does not say."""
    text = annotations.get(POD_DELETION_COST, "").strip()
    return int(text) if _COST.fullmatch(text) else 0


def _seconds(text: str) -> float | None:
    if text.isascii() and text.isdecimal() and len(text) < 10:
        return float(text)
    if not _DURATION.fullmatch(text):
        return None
    return sum(float(amount) * _UNITS[unit] for amount, unit in re.findall(_PART, text))
