"""Settings and facts beyond the fields of v2beta1, as annotations.

Never new fields: typed clients drop what they do not know when they write a job back.
"""

from collections.abc import Mapping

_PREFIX = "mpi-operator.kubeflow.org/"

# On a job, for its author to set.
MAX_WORKER_REPLACEMENTS = _PREFIX + "max-worker-replacements"
FORCE_DELETE_LOST_WORKERS = _PREFIX + "force-delete-lost-workers"
TTL_DELETES_JOB = _PREFIX + "ttl-deletes-job"

# On the ConfigMap of a job, for the operator alone: what it has to remember across restarts.
WORKER_REPLACEMENTS = _PREFIX + "worker-replacements"


def is_on(annotations: Mapping[str, str], name: str) -> bool:
    """Whether a switch is set. Only a plain yes counts: a switch may delete things."""
    return annotations.get(name, "").strip().lower() == "true"


def number(annotations: Mapping[str, str], name: str) -> int | None:
    """A setting that is a number; None where there is none that makes sense."""
    text = annotations.get(name, "").strip()
    return int(text) if text.isdecimal() and len(text) < 10 else None
