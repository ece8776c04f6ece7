"""Python environments for programs of others, created once and kept in the cache directory."""

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path


def cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "mpi-operator" / "venvs"


def provide(
    *packages: str,
    python: str = sys.executable,
    place: Path | None = None,
    variables: dict[str, str] | None = None,
) -> Path:
    """The directory of an environment with these packages, created if it does not exist.

    `variables` are for the installation.
    """
    name = "-".join((*packages, f"py{_version(python)}")).replace("==", "-")
    parent = place or cache()
    parent.mkdir(parents=True, exist_ok=True)
    directory = parent / name
    with (parent / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test runs in parallel may need it at once
        if not (directory / ".ready").exists():
            shutil.rmtree(directory, ignore_errors=True)
            _run(python, "-m", "venv", str(directory))
            pip = (str(directory / "bin" / "python"), "-m", "pip", "--disable-pip-version-check")
            _run(*pip, "install", "--quiet", *packages, variables=variables)
            (directory / ".ready").touch()
    return directory


def _version(python: str) -> str:
    show = "import sys; print('%d.%d' % sys.version_info[:2])"
    shown = subprocess.run([python, "-c", show], capture_output=True, text=True, check=True)
    return shown.stdout.strip()


def _run(*argv: str, variables: dict[str, str] | None = None) -> None:
    environment = {**os.environ, **(variables or {})}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)} failed:\n{done.stdout}{done.stderr}")
