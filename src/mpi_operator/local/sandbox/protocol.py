"""What a sandbox can do, whatever it is made of.

A pod gets one sandbox, its containers share it. Two kinds are made here (`host`): Linux namespaces,
and plain processes where those cannot be had. A third kind, such as podman, would be another
implementation of `Sandboxes`.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Protocol

import msgspec


class Kind(StrEnum):
    """How far the pods of this machine are apart from each other."""

    NAMESPACES = "namespaces"
    PLAIN = "plain"


class SandboxError(Exception):
    """A sandbox could not be made, or is gone."""


class StartError(Exception):
    """A program could not be started. `number` is the kernel's reason, such as ENOENT."""

    def __init__(self, message: str, number: int = 0) -> None:
        super().__init__(message)
        self.number = number


class Mount(msgspec.Struct, frozen=True):
    """A file or directory of this machine, and where a container finds it."""

    source: Path
    target: str
    read_only: bool = False


class Frame(msgspec.Struct, frozen=True):
    """What a pod has before any of its containers."""

    hostname: str
    directory: Path
    """Of the pod alone. It exists, and belongs to the caller."""
    memory: Mapping[Path, str] = msgspec.field(default_factory=dict)
    """Directories that should be kept in memory, with the options of their tmpfs."""


class Command(msgspec.Struct, frozen=True):
    """What to run. `env` is all there is: nothing is inherited."""

    argv: Sequence[str]
    env: Mapping[str, str]
    directory: str


class Process(Protocol):
    """A program that was started in a sandbox."""

    pid: int

    async def wait(self) -> int:
        """Its exit code; below zero the signal that ended it. SandboxError: nobody knows."""
        ...

    def signal(self, number: int, *, group: bool = False) -> None:
        """Send it, or all that it started in the foreground, a signal; if it has not ended."""
        ...


class Sandbox(Protocol):
    """Where one pod runs."""

    async def furnish(self, container: str, mounts: Sequence[Mount]) -> None:
        """Give a container its files. Needed before anything can run in it."""
        ...

    def seen(self, container: str, text: str) -> str:
        """A text for the container, with paths as they are seen from inside."""
        ...

    async def run(self, container: str, command: Command, stdio: tuple[int, int, int]) -> Process:
        """Start a program in a container. The descriptors stay the caller's; StartError if not."""
        ...

    async def clear(self, container: str) -> None:
        """End every process of a container."""
        ...

    async def close(self) -> None:
        """End every process. When this returns there is none. Safe to call twice."""
        ...

    async def closed(self) -> str:
        """Wait until the sandbox is gone, by `close` or by accident."""
        ...


class Sandboxes(Protocol):
    """A machine that sandboxes can be opened on."""

    kind: Kind

    async def open(self, frame: Frame) -> Sandbox: ...

    async def close(self) -> None:
        """End all sandboxes."""
        ...
