"""Where the state of runs is: in the home of the user, or in a temporary directory.

    ${XDG_STATE_HOME:-~/.local/state}/mpi-operator
    ${TMPDIR:-/tmp}/mpi-operator-<uid>      if that cannot be written, as in many containers

Other verbs look in both places: where a run is depends on what was writable when it started.
"""

import os
import stat
from pathlib import Path
from typing import NamedTuple

_NAME = "mpi-operator"


class Place(NamedTuple):
    """A directory for state, and why it is a temporary one if it is."""

    path: Path
    why_temporary: str = ""


def writable() -> Place:
    """The directory for new runs, created if it does not exist."""
    try:
        own = _own()
        _make(own)
    except OSError as error:
        place = _temporary()
        _make(place)
        if not _is_private(place):
            raise PermissionError(0, "not a private directory of this user", str(place)) from error
        return Place(place, f"{error.filename or 'the home directory'}: {error.strerror}")
    return Place(own)


def all_places() -> list[Path]:
    """Every directory that may have state of this user."""
    temporary = [_temporary()] if _is_private(_temporary()) else []
    try:
        return [_own(), *temporary]
    except OSError:
        return temporary


def _own() -> Path:
    if state := os.environ.get("XDG_STATE_HOME"):
        return Path(state).absolute() / _NAME
    try:
        return Path.home().absolute() / ".local" / "state" / _NAME
    except RuntimeError as error:  # a user without a home, as in many containers
        raise FileNotFoundError(0, "this user has no home directory") from error


def _temporary() -> Path:
    return Path(os.environ.get("TMPDIR") or "/tmp").absolute() / f"{_NAME}-{os.getuid()}"  # noqa: S108


def _make(directory: Path) -> None:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not os.access(directory, os.W_OK | os.X_OK):
        raise PermissionError(0, "not writable", str(directory))


def _is_private(directory: Path) -> bool:
    """Its name can be guessed, so another user may have made it, or a link in its place."""
    try:
        found = directory.lstat()
    except OSError:
        return False
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return is_ours and not found.st_mode & 0o077
