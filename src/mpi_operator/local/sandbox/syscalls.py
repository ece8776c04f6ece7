"""System calls that Python lacks, through the C library.

`unshare` and `nsenter` of util-linux are not on every machine, and cost a process each.
"""

import ctypes
import os

NEW_MOUNTS = 0x00020000
NEW_NAMES = 0x04000000
NEW_IPC = 0x08000000
NEW_USER = 0x10000000
NEW_PIDS = 0x20000000

_READ_ONLY = 1
_REMOUNT = 32
_BIND = 4096
_RECURSIVE = 16384
_PRIVATE = 1 << 18
_DETACH = 2
_SET_CHILD_SUBREAPER = 36
# What a mount in a user namespace must keep of the one it is made from: nosuid, nodev, noexec,
# noatime, nodiratime, relatime. Their numbers are the same in `statvfs` but for the last three.
_KEPT = 2 | 4 | 8
_TIMES = {1024: 1024, 2048: 2048, 4096: 1 << 21}

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(namespaces: int) -> None:
    """Move this process into new namespaces."""
    _call("unshare", namespaces)


def enter(namespace: int) -> None:
    """Enter the namespace of a descriptor."""
    _call("setns", namespace, 0)


def set_hostname(name: str) -> None:
    encoded = name.encode()
    _call("sethostname", encoded, len(encoded))


def make_private(path: str) -> None:
    """Hide later mounts below a path from other namespaces."""
    _mount(None, path, None, _RECURSIVE | _PRIVATE)


def mount_proc(path: str) -> None:
    _mount("proc", path, "proc", 2 | 4 | 8)


def mount_tmpfs(path: str, options: str = "mode=0755") -> None:
    _mount("tmpfs", path, "tmpfs", 2 | 4, options)


def bind(source: str, target: str, *, read_only: bool = False) -> None:
    """Mount a file or directory at another place too, with all mounts below it."""
    _mount(source, target, None, _BIND | _RECURSIVE)
    if read_only:
        _mount(None, target, None, _REMOUNT | _BIND | _READ_ONLY | _kept_flags(target))


def pivot_root(new: str, old: str) -> None:
    _call("pivot_root", new.encode(), old.encode())


def detach(path: str) -> None:
    _call("umount2", path.encode(), _DETACH)


def adopt_orphans() -> None:
    """Become the parent of all descendants whose own parents end."""
    _call("prctl", _SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _kept_flags(path: str) -> int:
    found = os.statvfs(path).f_flag
    return (found & _KEPT) | sum(flag for known, flag in _TIMES.items() if found & known)


def _mount(
    source: str | None, target: str, kind: str | None, flags: int, options: str = ""
) -> None:
    _call(
        "mount",
        source.encode() if source else None,
        target.encode(),
        kind.encode() if kind else None,
        ctypes.c_ulong(flags),
        options.encode() if options else None,
        about=target,
    )


def _call(name: str, *arguments: object, about: str = "") -> None:
    if getattr(_libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}", *([about] if about else []))
