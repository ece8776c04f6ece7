"""The root file system of a container: this machine's files, with its volumes mounted in them.

A volume needs a mount point, and the machine has no `/etc/mpi` and must not get one. So the root is
a tmpfs with everything of the machine bound into it, as bubblewrap does. A directory that lacks a
mount point is covered the same way: by a tmpfs into which its old contents are bound one by one.

    scratch/            a tmpfs, the root while building
    ├── machine/        the machine's root as it was
    └── new/            becomes the root
"""

from __future__ import annotations

import os

from . import syscalls

_MACHINE = "/machine"
_NEW = "/new"
# Consoles and disks: hundreds of them on some machines, and useless to a pod.
_NO_DEVICES = ("tty", "vcs", "loop", "ram", "hvc", "nbd")


def build(scratch: str, mounts: list[tuple[str, str, bool]]) -> None:
    """Make the root of this process' mount namespace.

    A mount is a path of the machine, where it appears, and whether it is read-only.
    """
    # Links are followed in the machine's own tree, while it is still the root.
    wanted = sorted(
        ((source, os.path.realpath(target), read_only) for source, target, read_only in mounts),
        key=lambda mount: mount[1].count("/"),
    )
    _move_into(scratch)
    root = _Root()
    for source, target, read_only in wanted:
        root.mount(source, target, read_only)
    _leave_for_new()


def _move_into(scratch: str) -> None:
    syscalls.mount_tmpfs(scratch)
    os.mkdir(scratch + _MACHINE)
    os.mkdir(scratch + _NEW)
    syscalls.pivot_root(scratch, scratch + _MACHINE)
    os.chdir("/")


def _leave_for_new() -> None:
    os.chdir(_NEW)
    syscalls.pivot_root(".", ".")  # the old root now covers the new one, and is unmounted
    syscalls.detach(".")
    os.chdir("/")


class _Root:
    """The tree below `/new`."""

    def __init__(self) -> None:
        self._ours: list[str] = []  # where directories can be made
        self._cover("/")

    def mount(self, source: str, target: str, read_only: bool) -> None:
        place = _NEW + target
        is_directory = os.path.isdir(_MACHINE + source)
        if not (os.path.isdir(place) if is_directory else os.path.isfile(place)):
            self._make(target, is_directory)
        syscalls.bind(_MACHINE + source, place, read_only=read_only)
        if is_directory and not read_only:
            self._ours.append(target)

    def _make(self, target: str, is_directory: bool) -> None:
        """Make a mount point."""
        parent = os.path.dirname(target)
        existing = parent
        while not os.path.isdir(_NEW + existing):
            existing = os.path.dirname(existing)
        if not self._is_ours(existing):
            self._cover(existing)
        os.makedirs(_NEW + parent, exist_ok=True)
        if os.path.lexists(_NEW + target):
            os.unlink(_NEW + target)  # a link to nowhere, or a file where a directory should be
        _make_empty(_NEW + target, is_directory)

    def _is_ours(self, directory: str) -> bool:
        """Whether a directory is on a tmpfs or a volume of the pod, and not the machine's."""
        around = max((ours for ours in self._ours if _is_within(directory, ours)), key=len)
        return os.stat(_NEW + directory).st_dev == os.stat(_NEW + around).st_dev

    def _cover(self, directory: str) -> None:
        """Cover a directory by a tmpfs that has the same contents."""
        entries = _entries(_MACHINE + directory)
        syscalls.mount_tmpfs(_NEW + directory)
        self._ours.append(directory)
        for entry in entries:
            _keep(entry, os.path.join(_NEW + directory, entry.name))


def _is_within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def _entries(directory: str) -> list[os.DirEntry[str]]:
    try:
        found = list(os.scandir(directory))
    except PermissionError:
        return []  # what this user cannot list, its pods cannot either
    if directory == _MACHINE + "/dev":
        return [entry for entry in found if not entry.name.startswith(_NO_DEVICES)] + [
            entry for entry in found if entry.name == "tty"
        ]
    return found


def _keep(entry: os.DirEntry[str], place: str) -> None:
    if entry.is_symlink():
        os.symlink(os.readlink(entry.path), place)
        return
    _make_empty(place, entry.is_dir())
    syscalls.bind(entry.path, place)


def _make_empty(place: str, is_directory: bool) -> None:
    if is_directory:
        os.mkdir(place)
    else:
        os.close(os.open(place, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))
