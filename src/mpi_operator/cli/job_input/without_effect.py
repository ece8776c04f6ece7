"""Which fields of a job have no effect on this machine: pure."""

from collections.abc import Iterable, Iterator

from mpi_operator.api.types import MPIJob
from mpi_operator.kube.resources import Manifest

from .references import containers, pod_specs

# Of pods: where they run, and as whom. `hostNetwork` has an effect: there is no other network.
_POD = (
    *("nodeSelector", "nodeName", "affinity", "tolerations", "topologySpreadConstraints"),
    *("priorityClassName", "schedulerName", "runtimeClassName", "serviceAccountName"),
    *("dnsPolicy", "dnsConfig", "hostPID", "hostIPC"),
)


def notice(jobs: Iterable[MPIJob]) -> str:
    """One line about all such fields; empty if there are none."""
    found = dict.fromkeys(name for job in jobs for name in fields(job))
    return f"No effect on this machine: {', '.join(found)}" if found else ""


def fields(job: MPIJob) -> Iterator[str]:
    """The names of the fields."""
    for pod in pod_specs(job).values():
        yield from (name for name in _POD if pod.get(name))
        yield from _of_security(pod)
        for container in containers(pod):
            yield from _of_security(container)
            yield from _limits(container.get("resources") or {})
    if job.spec.run_policy.scheduling_policy:
        yield "schedulingPolicy"


def _limits(resources: Manifest) -> Iterator[str]:
    """Those of a container. One without a request is the request, as in Kubernetes."""
    requests = resources.get("requests") or {}
    for name in ("cpu", "memory"):
        if name in (resources.get("limits") or {}):
            yield f"{name} limits" + ("" if name in requests else " (except as requests)")


def _of_security(part: Manifest) -> Iterator[str]:
    """The fields of a security context; what it only forbids is no loss."""
    context = part.get("securityContext") or {}
    forbids = ("runAsNonRoot", "allowPrivilegeEscalation", "readOnlyRootFilesystem")
    yield from (name for name, value in context.items() if value and name not in forbids)
