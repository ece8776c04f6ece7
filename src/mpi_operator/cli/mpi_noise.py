"""What an MPI prints by mistake, and what is not part of the output of a job.

PRRTE, the launcher of Open MPI 5, writes its banners with the NUL that ends them in memory, and it
warns about a race that it has lost and that does no harm: a child that is already running cannot be
moved to another process group.
"""

import re

_BANNER_END = re.compile(rb"-{40,}")
_WARNING = re.compile(rb"(?:\[\S+\] )?plm:ssh: Warning: setpgid\(\d+,\d+\) failed in parent .*")


class MpiNoise:
    """Recognises the noise in one stream of pieces."""

    def __init__(self) -> None:
        self._is_after_banner = False

    def hides(self, printed: bytes, end: bytes) -> bool:
        """Whether a piece is nothing but noise."""
        is_lone_nul = self._is_after_banner and printed == b"\0" and not end
        return is_lone_nul or bool(end and _WARNING.fullmatch(printed))

    def cleaned(self, printed: bytes) -> bytes:
        """A piece without the NUL of the banner before it."""
        clean = printed[1:] if self._is_after_banner and printed[:1] == b"\0" else printed
        self._is_after_banner = bool(_BANNER_END.fullmatch(clean))
        return clean
