"""The interface of sandboxes.

A pod has one sandbox, which its containers share. `host` has two kinds: Linux namespaces, and plain
processes where namespaces are not available. A third kind, such as podman, would be another
implementation of `Sandboxes`.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Protocol

import msgspec


class Kind(StrEnum):
    """How pods of this machine are isolated from each other."""

    NAMESPACES = "namespaces"
    PLAIN = "plain"


class SandboxError(Exception):
    """A sandbox could not be created, or is gone."""


class StartError(Exception):
    """A program could not be started. `number` is the errno, such as ENOENT."""

    def __init__(self, message: str, number: int = 0) -> None:
        super().__init__(message)
        self.number = number


class Mount(msgspec.Struct, frozen=True):
    """A file or directory of this machine, and where a container sees it."""

    source: Path
    target: str
    read_only: bool = False


class SandboxConfig(msgspec.Struct, frozen=True):
    """What a pod has before any of its containers."""

    hostname: str
    directory: Path
    """The directory of the pod. The caller creates and removes it."""
    tmpfs: Mapping[Path, str] = msgspec.field(default_factory=dict)
    """Directories to keep in memory, with the options of their tmpfs."""


class Command(msgspec.Struct, frozen=True):
    """What to run. `env` is the whole environment: nothing is inherited."""

    argv: Sequence[str]
    env: Mapping[str, str]
    directory: str


class Process(Protocol):
    """A program that was started in a sandbox."""

    pid: int

    async def wait(self) -> int:
        """Its exit code; below zero the signal that killed it. SandboxError if it is lost."""
        ...

    def signal(self, number: int, *, group: bool = False) -> None:
        """Send a signal to it, or to its process group, if it has not ended."""
        ...


class Sandbox(Protocol):
    """The sandbox of one pod."""

    async def mount(self, container: str, mounts: Sequence[Mount]) -> None:
        """Mount the files of a container. Needed before anything can run in it."""
        ...

    async def run(self, container: str, command: Command, stdio: tuple[int, int, int]) -> Process:
        """Start a program in a container, or StartError. The caller closes its descriptors."""
        ...

    async def kill_container(self, container: str) -> None:
        """Kill every process of a container."""
        ...

    async def close(self) -> None:
        """Kill every process; none is left when this returns. Safe to call twice."""
        ...

    async def closed(self) -> str:
        """Wait until the sandbox is gone, whatever the cause; the error, if any."""
        ...


class Sandboxes(Protocol):
    """Opens sandboxes on a machine."""

    kind: Kind

    async def open(self, config: SandboxConfig) -> Sandbox: ...

    async def close(self) -> None:
        """Close all sandboxes."""
        ...
