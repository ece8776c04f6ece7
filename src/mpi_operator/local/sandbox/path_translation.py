"""Translates the paths of a container in text to their real places on this machine.

Without namespaces a volume cannot be mounted at `/etc/mpi`; it is in the pod's directory. So where
an argument or a variable mentions `/etc/mpi` or anything below it, it gets the real place.
"""

import re
from collections.abc import Sequence

from .protocol import Mount


class Translation:
    """Translates the mount paths of one container."""

    def __init__(self, mounts: Sequence[Mount]) -> None:
        self._places = {
            target: str(mount.source)
            for mount in mounts
            if (target := mount.target.rstrip("/")) and target != str(mount.source)
        }
        longest_first = sorted(self._places, key=len, reverse=True)
        names = "|".join(map(re.escape, longest_first))
        # Only whole paths match: /opt/etc/mpi does not contain /etc/mpi.
        self._pattern = re.compile(rf"(?<![\w.~/-])(?:{names})(?![\w.-])") if names else None

    def __call__(self, text: str) -> str:
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda match: self._places[match[0]], text)
