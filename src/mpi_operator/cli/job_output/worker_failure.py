"""How workers failed by themselves: what their launcher then reports is only a consequence."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mpi_operator.api import labels
from mpi_operator.kube.resources import Manifest

from .job_stream import role_of
from .pod_column import is_ending


class _End(NamedTuple):
    """A container that has ended, even if it will be restarted."""

    container: str
    terminated: Manifest

    def __str__(self) -> str:
        if self.terminated.get("reason") == "StartError" and self.terminated.get("message"):
            return str(self.terminated["message"])
        return f"{self.container} failed with exit code {self.terminated['exitCode']}"


def worker_failure(pods: Iterable[Manifest], launcher: Manifest) -> str:
    """One worker that had failed when the launcher ended, and how; "" if none had.

    The pods are in the order of their creation: a worker that runs again has recovered.
    """
    ended = _finished_at(launcher)
    failed: dict[str, _End] = {}
    for pod in pods:
        if role_of(pod) != labels.Role.WORKER or is_ending(pod):
            continue
        end = next((each for each in _ends(pod) if each.terminated.get("exitCode")), None)
        if end and _is_before(end.terminated, ended):
            failed[pod["metadata"]["name"]] = end
        elif (pod.get("status") or {}).get("phase") == "Running":
            failed.pop(pod["metadata"]["name"], None)
    if not failed:
        return ""
    (name, first), *others = failed.items()
    more = f" (and {len(others)} more)" if others else ""
    return f"{name}{more}: {first}"


def _is_before(terminated: Manifest, ended: str) -> bool:
    """Whether a container ended first; one without a time, or both in one second, count too."""
    return not ended or str(terminated.get("finishedAt") or "") <= ended


def _finished_at(pod: Manifest) -> str:
    return max((str(each.terminated.get("finishedAt") or "") for each in _ends(pod)), default="")


def _ends(pod: Manifest) -> Iterator[_End]:
    """The containers of a pod that do not run any more."""
    status = pod.get("status") or {}
    kinds = {"init container": "initContainerStatuses", "container": "containerStatuses"}
    for kind, field in kinds.items():
        for each in status.get(field) or ():
            state = each.get("state") or {}
            terminated = state.get("terminated") or (each.get("lastState") or {}).get("terminated")
            if terminated and "running" not in state:
                yield _End(f"{kind} {each['name']}", terminated)
