"""The supported Pythons that this machine has."""

import glob
import os
import subprocess
import tomllib
from pathlib import Path

_PROJECT = Path(__file__).parents[2] / "pyproject.toml"
_PREFIX = "Programming Language :: Python :: 3."


def supported() -> list[str]:
    """The versions that the project claims to support, such as 3.11."""
    classifiers = tomllib.loads(_PROJECT.read_text())["project"]["classifiers"]
    found = (each.removeprefix(_PREFIX) for each in classifiers if each.startswith(_PREFIX))
    return [f"3.{minor}" for minor in found]


def installed() -> dict[str, str]:
    """The program of each supported version that can make environments."""
    programs = {version: _program(version) for version in supported()}
    return {version: program for version, program in programs.items() if program}


def _program(version: str) -> str | None:
    """Like `find_python` of scripts/test-pythons: a shim of pyenv may exist and not run."""
    name = f"python{version}"
    pyenv = os.environ.get("PYENV_ROOT") or str(Path.home() / ".pyenv")
    made = glob.glob(f"{pyenv}/versions/{version}.*/bin/{name}")
    candidates = (name, *made, str(Path.home() / ".local/bin" / name))
    return next(filter(_works, candidates), None)


def _works(program: str) -> bool:
    try:
        tried = subprocess.run([program, "-c", "import ensurepip, venv"], capture_output=True)
    except FileNotFoundError:
        return False
    return tried.returncode == 0
