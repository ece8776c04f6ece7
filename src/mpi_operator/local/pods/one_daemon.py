"""Open MPI without namespaces: one daemon, whose ranks are handed to the workers one by one.

Its daemons tell hosts apart by `gethostname`. Without namespaces all pods have the machine's name,
and with several daemons of one name a job hangs. So `mpirun` is told of one host with all slots,
itself; and each rank that it starts is started through a program of ours, which has it run in the
sandbox of the worker that the real hostfile has for it. MPICH and Intel MPI need none of this.
"""

import re
from collections.abc import Mapping

HOSTFILE_VARIABLES = ("PRTE_MCA_prte_default_hostfile", "OMPI_MCA_orte_default_hostfile")
RANK_VARIABLES = ("PMIX_RANK", "OMPI_COMM_WORLD_RANK")

_SLOTS = re.compile(r"\bslots=(\d+)")


def hostfile_of(variables: Mapping[str, str]) -> str:
    """The hostfile that Open MPI is told of; "" where none is."""
    return next((variables[name] for name in HOSTFILE_VARIABLES if variables.get(name)), "")


def agent_variables(program: str) -> dict[str, str]:
    """What makes Open MPI 5 and 4 start ranks through a program."""
    return {"PRTE_MCA_odls_base_exec_agent": program, "OMPI_MCA_orte_fork_agent": program}


def hosts_by_rank(hostfile: str) -> list[str]:
    """The host of each rank, filled up one after the other as mpirun does."""
    lines = (line.partition("#")[0].strip() for line in hostfile.splitlines())
    return [host for line in lines if line for host in [line.split()[0]] * _slots(line)]


def local_hostfile(hostfile: str) -> str:
    """One host with as many slots as all have together."""
    return f"localhost slots={len(hosts_by_rank(hostfile))}\n"


def _slots(line: str) -> int:
    found = _SLOTS.search(line)
    return int(found[1]) if found else 1
