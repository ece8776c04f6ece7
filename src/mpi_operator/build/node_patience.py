"""How long mpirun waits for a worker whose node is silent: as long as Kubernetes does.

Until then the node may come back, and everything goes on. After that the worker is evicted anyway.
"""

from collections.abc import Iterable

from mpi_operator.api import MPIJob
from mpi_operator.kube.resources import Manifest

FOR_EVER = 0
# The control plane calls a node unreachable after 40 or 50 seconds; ssh must not be the first one.
_GRACE = 60
_LONGEST = 365 * 86_400


def node_patience(job: MPIJob) -> int | None:
    """Seconds; None where a job leaves it to the cluster, which has five minutes by default."""
    worker = job.spec.worker
    if worker is None:
        return None
    tolerations = worker.template["spec"].get("tolerations") or ()
    matching = [each for each in tolerations if _tolerates_silence(each)]
    return _patience(each.get("tolerationSeconds") for each in matching) if matching else None


def _patience(seconds: Iterable[int | None]) -> int:
    """As Kubernetes counts: the shortest time that is given, and for ever where none is."""
    given = [each for each in seconds if each is not None]
    return min(max(min(given), 0) + _GRACE, _LONGEST) if given else FOR_EVER


def _tolerates_silence(toleration: Manifest) -> bool:
    """Whether it is about the taint of nodes from which nothing is heard."""
    key, effect = toleration.get("key"), toleration.get("effect")
    has_value = toleration.get("operator") != "Exists" and toleration.get("value")
    return (
        key in (None, "", "node.kubernetes.io/unreachable")
        and effect in (None, "", "NoExecute")
        and not has_value
    )
