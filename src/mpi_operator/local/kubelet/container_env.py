"""What every container of this machine gets besides what it asks for."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from mpi_operator.local.remote_exec.agent_server import AGENT, agent_environment

HOME = "/.pod"  # where a container sees the directory of its pod
BIN = f"{HOME}/bin"
MPI = f"{HOME}/mpi"  # programs in the place of an mpirun, for those who need them
TMP = f"{HOME}/tmp"  # noqa: S108

# Open MPI asks who is root whether they mean it. They do: it is their machine, and in a container
# images say so in the same way.
_AS_ROOT = {
    f"{prefix}_ALLOW_RUN_AS_ROOT{suffix}": "1"
    for prefix in ("OMPI", "PRTE")
    for suffix in ("", "_CONFIRM")
}
# Each pod would bind its first rank to the first core, as if it had the machine to itself.
_UNBOUND = {
    "PRTE_MCA_hwloc_default_binding_policy": "none",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "I_MPI_PIN": "off",
}
# All pods are on this machine, so ranks meet where nothing comes and goes: another network (of
# containers, of a VPN) may be gone between the moment that libfabric lists it and that it binds to
# it. Open MPI and UCX would not connect different hosts over loopback.
_LOOPBACK = {"FI_TCP_IFACE": "lo"} if sys.platform == "linux" else {}


class Tools(msgspec.Struct, frozen=True):
    """Programs that a pod should find before those of the machine, such as an MPI."""

    path: Sequence[Path] = ()
    environment: Mapping[str, str] = msgspec.field(default_factory=dict)
    links: Mapping[str, Path] = msgspec.field(default_factory=dict)
    """Programs under other names than they have on this machine."""


def outfitted(
    machine: Mapping[str, str], declared: Mapping[str, str], tools: Tools, given: Mapping[str, str]
) -> dict[str, str]:
    """The environment of a container.

    What it declares wins over the machine and the tools. What is given to it (who it is, its GPUs)
    and the agent win over all, for without them it could not work here.
    """
    usual = _UNBOUND | _LOOPBACK | (_AS_ROOT if os.geteuid() == 0 else {})
    result = {**machine, **usual, **tools.environment, **declared, **given}
    result |= agent_environment(f"{BIN}/{AGENT}")
    result["TMPDIR"] = declared.get("TMPDIR", TMP)
    result["PATH"] = _joined([BIN, *map(str, tools.path)], result.get("PATH") or os.defpath)
    if libraries := tools.environment.get("LD_LIBRARY_PATH"):
        own = declared.get("LD_LIBRARY_PATH") or machine.get("LD_LIBRARY_PATH") or ""
        result["LD_LIBRARY_PATH"] = _joined([libraries], own)
    return result


def _joined(first: Sequence[str], rest: str) -> str:
    return ":".join([*first, *(part for part in rest.split(":") if part and part not in first)])
