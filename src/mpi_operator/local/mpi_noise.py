"""What an MPI prints that is not part of the output of a job.

PRRTE, the launcher of Open MPI 5, writes its banners with the NUL that ends them in memory, and it
warns about a race that it has lost and that does no harm: a child that is already running cannot be
moved to another process group.

It also reports the ranks that fail, because we ask for it (`mpi_variables`, `failures`): its banner
about them is missing if a rank fails before all others have started, or after all others have
ended. Those reports are for us.
"""

import re

_BANNER_END = re.compile(rb"-{40,}")
_NAME = rb"(?:\[\S+\] )?"
_WARNING = re.compile(_NAME + rb"plm:ssh: Warning: setpgid\(\d+,\d+\) failed in parent .*")
# Job 0 is that of the daemons.
_REPORT = re.compile(
    _NAME + rb"\[\S+@0,0\] errmgr:dvm: for proc \[\S+@(?P<job>\d+),(?P<rank>\d+)\] state "
    rb"(?P<state>[A-Z -]+)"
)
# Not those that PRRTE has killed because another one had failed.
_FAILURES = (b"EXITED", b"ABORTED", b"CALLED ABORT", b"FAILED", b"TERMINATED WITHOUT")


class MpiNoise:
    """Removes the noise from one stream of pieces."""

    def __init__(self) -> None:
        self._is_after_banner = False

    def cleaned(self, printed: bytes, end: bytes) -> tuple[bytes, bytes] | None:
        """What is left of a piece and its end; None if it is nothing but noise."""
        if self._is_after_banner and printed[:1] == b"\0":
            printed = printed[1:]
            if not (printed or end):
                return None
        self._is_after_banner = bool(_BANNER_END.fullmatch(printed))
        noise = _noise_in(printed) if end else None
        if noise is None:
            return printed, end
        # A program need not end its last line before the MPI prints one of its own.
        return (printed[: noise.start()], b"") if noise.start() else None


def without_noise(text: bytes) -> bytes:
    """The end of a log, as its readers see it."""
    noise = MpiNoise()
    lines = (line.partition(b"\n")[:2] for line in text.splitlines(keepends=True))
    return b"".join(b"".join(noise.cleaned(*line) or ()) for line in lines)


def failed_rank(printed: bytes) -> str:
    """The rank that a piece reports as failed; "" if it is no such report."""
    report = _REPORT.search(printed) if b" errmgr:dvm: " in printed else None
    if report is None or report["job"] == b"0" or not report["state"].startswith(_FAILURES):
        return ""
    return report["rank"].decode()


def _noise_in(printed: bytes) -> re.Match[bytes] | None:
    if b" errmgr:dvm: " in printed:
        return _REPORT.search(printed)
    return _WARNING.search(printed) if b"plm:ssh: " in printed else None
