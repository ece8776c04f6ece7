"""The hosts that run ranks: a hostfile for mpirun, and a discovery script for elastic launchers.

The hostfile has every host that the spec asks for. The script prints those that are running; an
elastic launcher, such as horovodrun, calls it repeatedly.
"""

import re
from collections.abc import Iterable

from mpi_operator.api import MPIJob, names
from mpi_operator.api.launcher_transport import uses_exec

from .implementations import host_line
from .settings import Settings

# A host name is at most 63 characters up to its first dot.
_HOST = re.compile(r"[-a-z0-9]{1,63}(?=[.:\s]|$)")
_PRINTED_HOST = re.compile(r"echo +([-a-z0-9]{1,63})([.:]\S*)?")


def hostfile(job: MPIJob, settings: Settings, workers: Iterable[int] | None = None) -> str:
    """One line per host of the job; the launcher comes first if it runs ranks."""
    hosts = _hosts(job, names.workers(job, workers), settings)
    return _lines(host_line(job, host) for host in hosts)


def discover_script(job: MPIJob, running: Iterable[int], settings: Settings) -> str:
    """A script that prints the running hosts with their slots."""
    workers = [names.worker(job, ordinal) for ordinal in sorted(set(running))]
    hosts = _hosts(job, workers, settings)
    slots = job.spec.slots_per_worker
    return _lines(["#!/bin/sh", *(f"echo {host}:{slots}" for host in hosts)])


def _hosts(job: MPIJob, workers: Iterable[str], settings: Settings) -> list[str]:
    """The hosts of these workers, by DNS names; exec wants the names of the pods themselves.

    A launcher that never has workers has its bare name, which needs no DNS. Its DNS name may not
    exist yet, and `mpirun` then takes it for another host. One whose workers have left keeps its
    name: an elastic launcher would take it for another host, too.
    """
    launchers = [names.launcher(job)] if job.spec.run_launcher_as_worker else []
    pods = [*launchers, *workers]
    if uses_exec(job) or _is_own_host(job):
        return pods
    return [names.host(job, pod, settings.cluster_domain) for pod in pods]


def _is_own_host(job: MPIJob) -> bool:
    """Whether the launcher is the only host, under a host name of its own."""
    uses_host_name = job.spec.launcher.template["spec"].get("hostNetwork")
    return job.spec.worker is None and not uses_host_name


def discovered(job: MPIJob, script: str) -> frozenset[int]:
    """The workers in a script of ours or of the Go operator, which leaves out the slots."""
    pods = map(_printed_pod, script.splitlines())
    indexes = (names.worker_index(job, pod) for pod in pods)
    return frozenset(index for index in indexes if index is not None)


def hosts_in(job: MPIJob, text: str) -> frozenset[int]:
    """The workers in a hostfile of ours or of another operator, for any MPI."""
    first_words = (found[0] for line in text.splitlines() if (found := _HOST.match(line)))
    indexes = (names.worker_index(job, pod) for pod in first_words)
    return frozenset(index for index in indexes if index is not None)


def _printed_pod(line: str) -> str:
    """The pod whose host a line prints; empty for other lines."""
    printed = _PRINTED_HOST.fullmatch(line.strip())
    return printed[1] if printed else ""


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
