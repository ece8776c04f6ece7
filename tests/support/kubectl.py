"""kubectl of the version that we test with."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from devcluster import binaries


@dataclass(frozen=True)
class Result:
    """What kubectl wrote, and its exit code."""

    code: int
    output: str
    errors: str


@dataclass(frozen=True)
class Kubectl:
    """kubectl with a kubeconfig. It keeps what it learns about the server in a directory."""

    kubeconfig: Path
    home: Path

    def __call__(self, *arguments: str, stdin: str = "") -> Result:
        program = binaries.provide(["kubectl"])["kubectl"]
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        done = subprocess.run(
            [program, f"--kubeconfig={self.kubeconfig}", *arguments],
            input=stdin,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return Result(done.returncode, done.stdout, done.stderr)
