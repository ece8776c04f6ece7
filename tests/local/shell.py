"""A shell in which `mpijob` runs."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.local.environments import Environment
from tests.local.run_processes import hang_report, marked

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "pi" / "pi.yaml"


@dataclass(frozen=True)
class User:
    """The user of a shell."""

    python: str = sys.executable
    become: tuple[str, ...] = ()
    """The prefix of a command that runs as this user."""
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))


class Shell:
    """Runs `mpijob` with one MPI and its own state directory."""

    def __init__(self, home: Path, mpi: Environment, user: User | None = None) -> None:
        self.runs = home / "mpi-operator" / "local"
        self._user = user or User()
        self.environment = {
            **self._user.environment,
            "XDG_STATE_HOME": str(home),
            "PATH": f"{mpi.directory / 'bin'}:{self._user.environment['PATH']}",
        }

    def start(
        self, *arguments: str, before: str = "", env: Mapping[str, str] = {}, **streams: Any
    ) -> "subprocess.Popen[str]":
        """Start `mpijob`; `before` is Python that runs first."""
        return subprocess.Popen(
            self.argv(*arguments, before=before),
            env={**self.environment, **env},
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **streams},
        )

    def argv(self, *arguments: str, before: str = "") -> list[str]:
        """The command line of `mpijob`."""
        program = f"{before}\nfrom mpi_operator.cli import main; main()"
        return [*self._user.become, self._user.python, "-c", program, *arguments]

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Exit code, stdout, stderr."""
        process = self.start(*arguments)
        try:
            out, err = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            raise AssertionError(self._end_hanging(process)) from None
        return process.returncode, out, err

    def _end_hanging(self, process: "subprocess.Popen[str]") -> str:
        """End a command that does not end, and its jobs; what they were doing."""
        report = hang_report([process.pid, *marked(self.runs)], self.runs)
        process.kill()  # its jobs end with it, see `fork_server`
        out, err = process.communicate()
        return f"mpijob did not end within 60s\n{report}\n--- stdout\n{out}\n--- stderr\n{err}"


def job(tmp_path: Path, command: list[str], **spec: object) -> str:
    """The file of a job whose launcher runs a command."""
    manifest = yaml.safe_load(EXAMPLE.read_text())
    roles = manifest["spec"]["mpiReplicaSpecs"]
    roles["Launcher"]["template"]["spec"]["containers"][0]["command"] = command
    manifest["spec"] |= spec
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump(manifest))
    return str(path)
