"""Where the state of runs is: in the home of the user, or in a temporary directory.

    ${XDG_STATE_HOME:-~/.local/state}/mpi-operator
    ${TMPDIR:-/tmp}/mpi-operator-<uid>      if that cannot be written, as in many containers
    /tmp/mpi-operator-<uid>                 if that cannot be written either

Other verbs look in all places: where a run is depends on what was writable when it started.
"""

import os
import stat
from pathlib import Path
from typing import NamedTuple

_NAME = "mpi-operator"
_TMP = "/tmp"  # noqa: S108


class Unwritable(Exception):
    """No directory for state can be written: why, for each of them."""


class StateDirectory(NamedTuple):
    """A directory for state, and why it is a temporary one if it is."""

    path: Path
    why_temporary: str = ""


def writable() -> StateDirectory:
    """The directory for new runs, created if it does not exist; Unwritable if there is none."""
    try:
        own = _own()
        _make(own)
    except OSError as error:
        return _first_temporary(_why(error))
    return StateDirectory(own)


def _first_temporary(problem: str) -> StateDirectory:
    """The first temporary directory that can be used, in place of the one with the problem."""
    problems = [problem]
    for place in _temporary():
        try:
            _make(place)
            if not _is_private(place):
                raise PermissionError(0, "not a private directory of this user", str(place))
        except OSError as error:
            problems.append(_why(error))
        else:
            return StateDirectory(place, problem)
    raise Unwritable("; ".join(problems))


def _why(error: OSError) -> str:
    return f"{error.filename or 'the home directory'}: {error.strerror}"


def all_places() -> list[Path]:
    """Every directory that may have state of this user."""
    temporary = [each for each in _temporary() if _is_private(each)]
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


def _temporary() -> list[Path]:
    parents = filter(None, (os.environ.get("TMPDIR"), _TMP))
    return [*dict.fromkeys(Path(each).absolute() / f"{_NAME}-{os.getuid()}" for each in parents)]


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
