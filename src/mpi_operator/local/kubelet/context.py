"""What the containers of a pod have in common: the node they run on, and their pod."""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from mpi_operator.kube.resources import Key, Manifest
from mpi_operator.local.remote_exec.agent_server import Request
from mpi_operator.local.sandbox.protocol import Kind, Process, Sandboxes

from .capacity import Machine
from .config_sources import Lookup, Sources
from .container_env import Tools
from .host_files import MountPoints
from .pod_dns import PodDNS
from .pod_logs import HOME
from .volumes import Volume

# Runs what an agent of one pod asks for in another pod.
Exec: TypeAlias = Callable[[Key, Request], Awaitable[Process]]

# The descriptor that a container reads as standard input, given its pod and its name; or None.
Stdin: TypeAlias = Callable[[Manifest, str], int | None]

_GRACE_SECONDS = 30.0


class Stdio(NamedTuple):
    """How the standard streams of containers are connected."""

    stdin: Stdin = lambda pod, container: None
    separates_stderr: bool = False
    """Whether `NodePods.output` tells standard error from standard output."""
    rank_0: int | None = None
    """The descriptor that rank 0 reads, if its mpirun would not pass on the end of the input."""

    @property
    def is_empty(self) -> bool:
        """Whether rank 0 has nothing to read."""
        null = os.stat(os.devnull)
        return self.rank_0 is not None and os.path.samestat(os.fstat(self.rank_0), null)


class NodeContext(msgspec.Struct, frozen=True):
    """What all pods of the node share."""

    directory: Path
    """The directory of the run. Every process has it in its environment."""
    sandboxes: Sandboxes
    dns: PodDNS
    machine: Machine
    environment: Mapping[str, str]
    working_directory: Path
    """Where containers start by default. It also replaces directories that only an image has."""
    mountpoints: MountPoints
    exec: Exec
    stdio: Stdio
    host_ip: str = "127.0.0.1"

    @property
    def is_plain(self) -> bool:
        return self.sandboxes.kind is Kind.PLAIN


class PodContext(msgspec.Struct, frozen=True):
    """One pod on the node."""

    pod: Manifest
    node: NodeContext
    directory: Path
    lookup: Lookup
    tools: Tools = msgspec.field(default_factory=Tools)
    gpus: Sequence[str] = ()
    shared_memory: Path | None = None
    """Where its processes share memory, if it has no `/dev/shm` of its own."""
    link: Path | None = None
    """Another path of its directory, if a shell would split that and programs get to see it."""
    volumes: dict[str, Volume] = msgspec.field(default_factory=dict)
    """The volumes that are ready."""

    @property
    def sources(self) -> Sources:
        return Sources(self.pod, self.lookup, self.node.machine.quantities)

    @property
    def key(self) -> Key:
        return Key(self.pod["metadata"]["namespace"], self.pod["metadata"]["name"])

    @property
    def hostname(self) -> str:
        return str(self.pod["spec"].get("hostname") or self.key.name)

    @property
    def root(self) -> Path:
        """The path of its directory for programs."""
        return self.link or self.directory

    @property
    def home(self) -> Path:
        """The directory that containers see as `/.pod`."""
        return self.root / HOME

    @property
    def grace_seconds(self) -> float:
        """How long its processes may take to end."""
        seconds = self.pod["spec"].get("terminationGracePeriodSeconds")
        return _GRACE_SECONDS if seconds is None else float(seconds)

    @property
    def containers(self) -> list[Manifest]:
        """All containers, in the order of their start."""
        spec = self.pod["spec"]
        return [*(spec.get("initContainers") or ()), *spec["containers"]]

    def termination_log(self, container: str) -> Path:
        """Where a container writes its termination message."""
        return self.root / "termination" / container
