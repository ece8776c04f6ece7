"""The environment variables and the command line of a container.

The machine's own environment stands in for that of an image: PATH, HOME and language are what the
user expects. Variables that would make an MPI believe it runs inside another job, or inside another
cluster, are left out.
"""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from mpi_operator.kube.resources import CONFIG_MAPS, SECRETS, Manifest
from mpi_operator.local.remote_exec.stand_ins import AGENT
from mpi_operator.mpi_variables import MPIS

from .config_sources import Sources, keys_of, value_of
from .downward_api import UnknownField, field, resource

HOME = "/.pod"  # where a container sees the directory of its pod
BIN = f"{HOME}/bin"
MPI = f"{HOME}/mpi"  # stand-ins for mpirun, for those containers that need them
TMP = f"{HOME}/tmp"  # noqa: S108

_FOREIGN_PREFIXES = (
    *(prefix for mpi in MPIS.values() for prefix in mpi.inherited),
    *("SLURM_", "PBS_", "LSB_", "KUBERNETES_", "HOROVOD_"),
)
_FOREIGN = re.compile(r"TMPDIR|HOSTNAME|PWD|OLDPWD|SHLVL|_|MAIL|PYTHON(HOME|STARTUP|INSPECT)")
# Name the environment that is active in a shell.
_ACTIVE = ("VIRTUAL_ENV", "CONDA_PREFIX")
# $(NAME), and $$(NAME) for a literal $(NAME).
_REFERENCE = re.compile(r"\$(\$|\(([^()\s]*)\))")


class Tools(msgspec.Struct, frozen=True):
    """Programs that a pod should find before those of the machine, such as an MPI."""

    path: Sequence[Path] = ()
    environment: Mapping[str, str] = msgspec.field(default_factory=dict)
    links: Mapping[str, Path] = msgspec.field(default_factory=dict)
    """Programs under other names than they have on this machine."""


def machine_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """What pods inherit from the environment of this process.

    A service or a cron job may have no HOME, and Open MPI does not start without one.
    """
    inherited = {
        name: value
        for name, value in variables.items()
        if not (name.startswith(_FOREIGN_PREFIXES) or _FOREIGN.fullmatch(name))
    }
    return {"HOME": _home_of_user(), **inherited}


def _home_of_user() -> str:
    home = os.path.expanduser("~")
    return home if home.startswith("/") else "/"


def container_env(
    machine: Mapping[str, str],
    declared: Mapping[str, str],
    tools: Tools,
    assigned: Mapping[str, str],
) -> dict[str, str]:
    """The whole environment of a container.

    What it declares wins over the machine and the tools. What is assigned to it (its identity, its
    GPUs) and the agent win over everything, because it could not work here without them.
    """
    result = {**machine, **_mpi_defaults(), **tools.environment, **declared, **assigned}
    result |= _remote_shell(f"{BIN}/{AGENT}")
    result["TMPDIR"] = declared.get("TMPDIR", TMP)
    result["PATH"] = _path(tools, result)
    if libraries := tools.environment.get("LD_LIBRARY_PATH"):
        own = declared.get("LD_LIBRARY_PATH") or machine.get("LD_LIBRARY_PATH") or ""
        result["LD_LIBRARY_PATH"] = _joined([libraries], own)
    return result


def _mpi_defaults() -> dict[str, str]:
    result: dict[str, str] = {}
    for mpi in MPIS.values():
        result |= mpi.unbound
        # Another network (of containers, of a VPN) may vanish, and then ranks hang. Loopback does
        # not, and the network that leads to the internet seldom does.
        if sys.platform == "linux":
            result |= mpi.loopback
            result |= {name: main for name in mpi.network if (main := main_network())}
        # Open MPI asks root for confirmation. Images confirm in the same way.
        if os.geteuid() == 0:
            result |= mpi.as_root
    return result


def main_network(table: Path = Path("/proc/net/route")) -> str:
    """The network interface of the default route; "" if there is none."""
    try:
        rows = [line.split() for line in table.read_text().splitlines()[1:]]
    except OSError:
        return ""
    # Interface, destination and gateway, flags, two counters, metric.
    defaults = [(int(row[6]), row[0]) for row in rows if int(row[1], 16) == 0]
    return min(defaults, default=(0, ""))[1]


def _remote_shell(agent: str) -> dict[str, str]:
    """Make each MPI call the agent where it would call ssh."""
    return {
        name: value.format(script=agent)
        for mpi in MPIS.values()
        for shell in mpi.remote_shells
        for name, value in shell.environment.items()
    }


def _path(tools: Tools, variables: Mapping[str, str]) -> str:
    """Our programs first, then the tools, unless the `PATH` leads to them already.

    The user's own order decides what `python` is: an MPI of the system must not hide that of a
    virtual environment.
    """
    given = variables.get("PATH") or os.defpath
    missing = [str(each) for each in tools.path if not _leads_to(each, given)]
    active = (
        [f"{variables[name]}/bin" for name in _ACTIVE if variables.get(name)] if missing else []
    )
    kept = [each for each in active if each in given.split(":") and not _has_mpirun(each)]
    return _joined([BIN, *kept, *missing], given)


def _leads_to(directory: Path, path: str) -> bool:
    """Whether the first `mpirun` of a PATH is in this directory."""
    return next(filter(_has_mpirun, path.split(":")), None) == str(directory)


def _has_mpirun(directory: str) -> bool:
    return os.access(f"{directory}/mpirun", os.X_OK)


def _joined(first: Sequence[str], rest: str) -> str:
    return ":".join([*first, *(part for part in rest.split(":") if part and part not in first)])


async def declared_variables(container: Manifest, sources: Sources) -> dict[str, str]:
    """The variables that a container declares; Missing or UnknownField where that is impossible."""
    variables: dict[str, str] = {}
    for source in container.get("envFrom") or ():
        variables.update(await _from_object(source, sources))
    for variable in container.get("env") or ():
        value = await _value(variable, container, variables, sources)
        if value is not None:
            variables[variable["name"]] = value
    return variables


async def _from_object(source: Manifest, sources: Sources) -> dict[str, str]:
    prefix = source.get("prefix") or ""
    for kind, known in (("configMapRef", CONFIG_MAPS), ("secretRef", SECRETS)):
        if reference := source.get(kind):
            optional = bool(reference.get("optional"))
            held = await keys_of(sources.lookup, known, reference["name"], optional=optional)
            return {prefix + key: text.decode(errors="replace") for key, text in held.items()}
    raise UnknownField(f"envFrom {', '.join(source)} is not supported on this machine")


async def _value(
    variable: Manifest, container: Manifest, variables: Mapping[str, str], sources: Sources
) -> str | None:
    source = variable.get("valueFrom")
    if not source:
        return expanded(str(variable.get("value") or ""), variables)
    if reference := source.get("fieldRef"):
        return field(sources.pod, reference["fieldPath"])
    if reference := source.get("resourceFieldRef"):
        return resource(sources.pod, container, reference, sources.machine)
    if reference := source.get("configMapKeyRef"):
        return await value_of(sources.lookup, CONFIG_MAPS, reference)
    if reference := source.get("secretKeyRef"):
        return await value_of(sources.lookup, SECRETS, reference)
    kinds = ", ".join(source)
    raise UnknownField(f"variable {variable['name']}: {kinds} is not supported on this machine")


def command_line(container: Manifest, variables: Mapping[str, str]) -> list[str]:
    """The words of a container's command; none where only its image says what to run."""
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    return [expanded(str(word), variables) for word in words]


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """A text with $(NAME) replaced; unknown names stay, as in Kubernetes."""

    def replacement(match: re.Match[str]) -> str:
        if match[1] == "$":
            return "$"
        return variables.get(match[2], match[0])

    return _REFERENCE.sub(replacement, text)
