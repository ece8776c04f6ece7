"""Places to mount at in directories that people work in.

A sandbox covers a directory that lacks a mount point (`sandbox/rootfs`), and what is then written
into it is gone with the pod. That is right for `/etc`; it would be wrong for the user's home and
for the directory of the job. There the mount point, an empty directory, is really made, and taken
away when the node ends (or by the next start, for it is on record).
"""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

RECORD = "mountpoints"


class MountPoints:
    """What was made in the directories of the user."""

    def __init__(self, run: Path, shared: Sequence[Path]) -> None:
        self._run = run
        self._shared = [directory.resolve() for directory in shared]

    def make(self, targets: Iterable[str]) -> None:
        """Make those places that would hide a shared directory."""
        for target in map(Path, targets):
            place = Path(os.path.realpath(target))
            missing = [each for each in (place, *place.parents) if not os.path.exists(each)]
            if missing and self._is_shared(missing[-1].parent):
                with (self._run / RECORD).open("a") as record:
                    record.writelines(f"{each}\n" for each in missing)
                with suppress(OSError):  # whoever may not write here loses nothing if it is hidden
                    place.mkdir(mode=0o700, parents=True)

    def _is_shared(self, directory: Path) -> bool:
        return any(
            directory == shared or (shared != Path("/") and shared in directory.parents)
            for shared in self._shared
        ) and os.access(directory, os.W_OK)


def remove(run: Path) -> None:
    """Take away what a run has made, unless somebody uses it by now."""
    with suppress(OSError):
        for line in (run / RECORD).read_text().splitlines():
            with suppress(OSError):
                Path(line).rmdir()
