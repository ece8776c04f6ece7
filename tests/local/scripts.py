"""Runs the scripts of pods with the shells of common images."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from mpi_operator.build import scripts

SHELLS = {
    "dash": ["dash"],
    "bash": ["bash", "--posix"],  # as when it is called sh
    "busybox": ["busybox", "sh"],
}


def missing(shell: str) -> bool:
    return shutil.which(SHELLS[shell][0]) is None


class Scripts:
    """Copies of the scripts that use paths in a directory of the test."""

    def __init__(self, directory: Path, shell: str) -> None:
        self.directory = directory
        self._shell = SHELLS[shell]
        self.last_words = directory / "termination-log"
        self.run_directory = directory / "run"
        self.run_directory.mkdir()
        self.configuration = directory / "etc"
        (self.configuration / "sshd_config.d").mkdir(parents=True)
        self._first_process = directory / "stat"
        self.has_run_for(seconds=0)
        self.last_words.touch()
        self.hosts = directory / "hosts"
        self.container_log = directory / "log"
        for name in (scripts.REMOTE_SHELL, scripts.WORKER, scripts.WORKER_READY):
            text = scripts.text(name)
            text = text.replace("/run/mpi-operator", str(self.run_directory))
            text = text.replace("/dev/termination-log", str(self.last_words))
            text = text.replace("/etc/ssh", str(self.configuration))
            text = text.replace("/etc/hosts", str(self.hosts))
            text = text.replace("setsid /bin/sh", f"setsid {' '.join(self._shell)}")
            text = text.replace("/proc/1/fd/2", str(self.container_log))
            text = text.replace("/proc/1/stat", str(self._first_process))
            (directory / name).write_text(text)

    @property
    def environment(self) -> Path:
        """The file in which a worker stores the environment of its container."""
        return self.run_directory / "environment"

    def has_run_for(self, seconds: float) -> None:
        """Set the age of the container."""
        uptime = float(Path("/proc/uptime").read_text().split()[0])
        ticks = int(max(uptime - seconds, 0) * 100)
        self._first_process.write_text(f"1 (a (b) c) S {'0 ' * 18}{ticks} 0\n")

    def give_up_early(self) -> None:
        """Make the remote shell give up after two seconds instead of half an hour."""
        script = self.directory / scripts.REMOTE_SHELL
        text = script.read_text()
        assert "longest_refusal=1800" in text
        script.write_text(text.replace("longest_refusal=1800", "longest_refusal=2"))

    def command(self, name: str, *arguments: str) -> list[str]:
        return [*self._shell, str(self.directory / name), *arguments]

    def start(
        self, name: str, *arguments: str, env: dict[str, str] | None = None, **more: Any
    ) -> "subprocess.Popen[str]":
        streams: Any = {"stdin": subprocess.PIPE, "stdout": -1, "stderr": -1, "text": True}
        variables = {**os.environ, "TMPDIR": str(self.directory), **(env or {})}
        return subprocess.Popen(self.command(name, *arguments), env=variables, **(streams | more))
