"""One running program: started in a session of its own, identified by pid *and* start time.

A pid identifies a process only until it is reused, so every record also has its start time (the
kernel's, with the boot id). Signals go to the whole process group, and only if the start time
matches.
"""

import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_PAUSE_SECONDS, _POLL_SECONDS = 5.0, 0.001
_KILL_SECONDS = 10.0  # how long the kernel may take to end a killed process


class StillAlive(Exception):
    """A process survived SIGKILL, so the kernel itself is stuck with it."""


@dataclass(frozen=True)
class Vitals:
    """What /proc says about a process."""

    born: str
    is_alive: bool
    uptime_seconds: float
    memory_bytes: int


@dataclass
class Process:
    """A program that was started, by this process or by an earlier one."""

    name: str
    argv: list[str]
    pid: int
    born: str
    log: Path
    _child: subprocess.Popen[bytes] | None = field(default=None, repr=False, compare=False)

    @property
    def is_alive(self) -> bool:
        vitals = self.vitals()
        return vitals is not None and vitals.is_alive

    @property
    def exit_code(self) -> int | None:
        """How it ended, if it has ended and was our child."""
        return self._child.poll() if self._child else None

    def vitals(self) -> Vitals | None:
        """What /proc says about this process, or None if it is gone, even if its pid is reused."""
        vitals = vitals_of(self.pid)
        return vitals if vitals and vitals.born == self.born else None

    def stop(self, grace_seconds: float = 10.0) -> None:
        """Ask it to end, wait, and kill it if it takes longer than that."""
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)  # a paused process would not receive it
        self.wait(grace_seconds)
        self.kill()

    def kill(self) -> None:
        """End it and its group, now, and wait until it and its children are gone."""
        family = self.family()
        self._signal(signal.SIGKILL)
        for member in family:
            if not member.wait(_KILL_SECONDS):
                raise StillAlive(
                    f"{member.name} (pid {member.pid}) is still alive {_KILL_SECONDS:.0f}s after"
                    f" SIGKILL. Check /proc/{member.pid}/status and the kernel log."
                )
        if self._child:
            self._child.wait()

    def pause(self) -> None:
        """Freeze it: connections stay open, nothing answers.

        On a busy machine it takes a while until all threads have received the signal, and one that
        has not may still answer.
        """
        self._signal(signal.SIGSTOP)
        deadline = time.monotonic() + _PAUSE_SECONDS
        while not _is_stopped(self.pid) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)

    def resume(self) -> None:
        """Resume a paused process."""
        self._signal(signal.SIGCONT)

    def wait(self, seconds: float) -> bool:
        """Whether it ended within that time."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return True
        try:
            return not self.is_alive or _has_ended(descriptor, seconds)
        finally:
            os.close(descriptor)

    def disown(self) -> None:
        """Let it outlive this process, which will not wait for it."""
        if self._child:
            # Keeps Popen from warning about a child that is still running.
            self._child.returncode = 0
            self._child = None

    def to_record(self) -> dict[str, Any]:
        """What is needed to find this process again."""
        return {
            "name": self.name,
            "argv": self.argv,
            "pid": self.pid,
            "born": self.born,
            "log": str(self.log),
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Process":
        """The process that `to_record` described, whether it still lives or not."""
        return cls(**{**record, "log": Path(record["log"])})

    def family(self) -> list["Process"]:
        """It and its children in its group, such as the program that an `nsenter` runs."""
        found = [self]
        if self.vitals() is None:
            return found
        with suppress(OSError):
            for pid in map(int, _children_file(self.pid).read_text().split()):
                vitals = vitals_of(pid)
                if vitals and os.getpgid(pid) == self.pid:
                    found.append(Process(f"{self.name}'s child", [], pid, vitals.born, self.log))
        return found

    def _signal(self, number: signal.Signals) -> None:
        # A zombie still owns its pid, and its group may have members, so its state is not checked.
        if self.vitals() is not None:
            with suppress(ProcessLookupError):
                leads_group = os.getpgid(self.pid) == self.pid
                (os.killpg if leads_group else os.kill)(self.pid, number)


def start(
    name: str, argv: Sequence[str], *, directory: Path, env: Mapping[str, str], log: Path
) -> Process:
    """Start a program in a session of its own, its output appended to a log file."""
    with log.open("ab") as output:
        child = subprocess.Popen(
            argv,
            cwd=directory,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    vitals = vitals_of(child.pid)
    assert vitals is not None, "a child keeps its entry in /proc until its parent waits for it"
    return Process(name, list(argv), child.pid, vitals.born, log, child)


def vitals_of(pid: int) -> Vitals | None:
    """What /proc says about a pid, or None if no process has it."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = _stat_fields(stat)
    state, ticks, pages = fields[0], int(fields[19]), int(fields[21])
    return Vitals(
        born=f"{_boot_id()}/{ticks}",
        is_alive=state not in "ZX",
        uptime_seconds=time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK"),
        memory_bytes=pages * os.sysconf("SC_PAGE_SIZE"),
    )


def _stat_fields(stat: str) -> list[str]:
    """The fields of a stat file from the state on.

    The program's name comes second, in brackets, and may contain anything, even brackets.
    """
    return stat[stat.rindex(")") + 2 :].split()


def _is_stopped(pid: int) -> bool:
    """Whether all threads are stopped or gone."""
    try:
        stats = [each.read_text() for each in Path(f"/proc/{pid}/task").glob("*/stat")]
    except (FileNotFoundError, ProcessLookupError):
        return False  # a thread has just ended: try again
    return all(_stat_fields(stat)[0] in "TtZX" for stat in stats)


def _children_file(pid: int) -> Path:
    return Path(f"/proc/{pid}/task/{pid}/children")


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _has_ended(descriptor: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(seconds * 1000))
