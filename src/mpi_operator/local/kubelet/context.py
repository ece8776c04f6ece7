"""What a pod's containers have in common: the machine they are on, and the pod they are of."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from mpi_operator.kube.resources import Key, Manifest
from mpi_operator.local.remote_exec.agent_server import Request
from mpi_operator.local.sandbox.protocol import Kind, Process, Sandboxes

from .capacity import Machine
from .config_sources import Lookup, Sources
from .container_env import Tools
from .host_files import MountPoints
from .pod_dns import Hosts
from .volumes import Volume

# How the agents of a pod reach another one.
Reach: TypeAlias = Callable[[Key, Request], Awaitable[Process]]

_GRACE_SECONDS = 30.0


class Place(msgspec.Struct, frozen=True):
    """What a machine has for all its pods."""

    directory: Path
    """Of the run. Its name marks every process."""
    sandboxes: Sandboxes
    hosts: Hosts
    machine: Machine
    environment: Mapping[str, str]
    working_directory: Path
    """Where a container starts that does not say, and what stands in for a directory that only
    its image has."""
    mountpoints: MountPoints
    reach: Reach
    host_ip: str = "127.0.0.1"

    @property
    def is_plain(self) -> bool:
        return self.sandboxes.kind is Kind.PLAIN


class PodContext(msgspec.Struct, frozen=True):
    """One pod on a machine."""

    pod: Manifest
    place: Place
    directory: Path
    lookup: Lookup
    tools: Tools = msgspec.field(default_factory=Tools)
    gpus: Sequence[str] = ()
    memory: Path | None = None
    """Where to share memory, if not in a `/dev/shm` of its own."""
    volumes: dict[str, Volume] = msgspec.field(default_factory=dict)
    """Those that are ready."""

    @property
    def sources(self) -> Sources:
        return Sources(self.pod, self.lookup, self.place.machine.texts)

    @property
    def key(self) -> Key:
        return Key(self.pod["metadata"]["namespace"], self.pod["metadata"]["name"])

    @property
    def hostname(self) -> str:
        return str(self.pod["spec"].get("hostname") or self.key.name)

    @property
    def home(self) -> Path:
        """What containers see as `/.pod`."""
        return self.directory / "pod"

    @property
    def grace_seconds(self) -> float:
        """How long its processes may take to end."""
        seconds = self.pod["spec"].get("terminationGracePeriodSeconds")
        return _GRACE_SECONDS if seconds is None else float(seconds)

    @property
    def containers(self) -> list[Manifest]:
        """All of them, in the order of their start."""
        spec = self.pod["spec"]
        return [*(spec.get("initContainers") or ()), *spec["containers"]]

    def termination_log(self, container: str) -> Path:
        """Where a container leaves its last words."""
        return self.directory / "termination" / container
