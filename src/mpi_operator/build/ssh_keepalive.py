"""How long mpirun waits for a worker whose node is silent: as long as Kubernetes does.

Until then the node may come back, and everything goes on. After that the worker is evicted anyway.
But no longer than TCP itself: it gives up after 15 minutes.
"""

from mpi_operator.api import MPIJob
from mpi_operator.kube.resources import Manifest

# The control plane calls a node unreachable after 40 or 50 seconds; ssh must not be the first one.
_GRACE = 60
_LONGEST = 900


def node_patience(job: MPIJob) -> int | None:
    """Seconds; None where a job leaves it to the cluster, which has five minutes by default."""
    worker = job.spec.worker
    tolerations = (worker.template["spec"].get("tolerations") or ()) if worker else ()
    # Of those that match a taint, Kubernetes takes the first.
    found = next(filter(_tolerates_silence, tolerations), None)
    if found is None:
        return None
    seconds = found.get("tolerationSeconds")  # without it: for ever
    return _LONGEST if seconds is None else min(max(seconds, 0) + _GRACE, _LONGEST)


def _tolerates_silence(toleration: Manifest) -> bool:
    """Whether it is about the taint of nodes from which nothing is heard."""
    key, effect = toleration.get("key"), toleration.get("effect")
    has_value = toleration.get("operator") != "Exists" and toleration.get("value")
    return (
        key in (None, "", "node.kubernetes.io/unreachable")
        and effect in (None, "", "NoExecute")
        and not has_value
    )
