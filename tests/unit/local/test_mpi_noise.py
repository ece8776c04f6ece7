"""What MPIs print that is not part of the output of a job."""

import pytest

from mpi_operator.cli.job_output.line_splitting import split_lines
from mpi_operator.local.mpi_noise import MpiNoise, failed_rank, without_noise

RULE = b"-" * 74 + b"\n"
WARNING = b"[vm:7] plm:ssh: Warning: setpgid(42,42) failed in parent with errno=EACCES(13)\n"
REPORT = b"[pi-launcher:3] [prterun-pi-launcher-3@0,0] errmgr:dvm: for proc "
FAILURE = REPORT + b"[prterun-pi-launcher-3@1,2] state EXITED WITH NON-ZERO STATUS\n"
DAEMON = REPORT + b"[prterun-pi-launcher-3@0,1] state COMMUNICATION FAILURE\n"


def cleaned(data: bytes) -> bytes:
    noise = MpiNoise()
    return b"".join(b"".join(noise.cleaned(*piece) or ()) for piece in split_lines(data))


@pytest.mark.parametrize("clean", [cleaned, without_noise])
@pytest.mark.parametrize(
    ("printed", "left"),
    [
        pytest.param(RULE + b"\0next\n", RULE + b"next\n", id="the NUL after a banner"),
        pytest.param(RULE + b"\0", RULE, id="a NUL at the end"),
        pytest.param(RULE + b"\0" + DAEMON + b"a\n", RULE + b"a\n", id="a report after a banner"),
        pytest.param(b"a\n" + WARNING + b"b\n", b"a\nb\n", id="the warning about a process group"),
        pytest.param(b"a\n" + FAILURE + DAEMON, b"a\n", id="reports"),
        pytest.param(b"half" + FAILURE + b" a line\n", b"half a line\n", id="in a line"),
        pytest.param(b"a\n\0b\n\0", b"a\n\0b\n\0", id="a NUL of the program"),
        pytest.param(b"my errmgr:dvm: x\n", b"my errmgr:dvm: x\n", id="a line of the program"),
        pytest.param(b"\n\na\r\n", b"\n\na\r\n", id="line ends"),
    ],
)
def test_only_noise_is_removed(clean, printed, left):
    assert clean(printed) == left


@pytest.mark.parametrize(
    ("printed", "rank"),
    [
        (FAILURE, "2"),
        (b"half" + FAILURE, "2"),
        (FAILURE.replace(b"EXITED WITH NON-ZERO STATUS", b"ABORTED BY SIGNAL"), "2"),
        (FAILURE.replace(b"EXITED WITH NON-ZERO STATUS", b"KILLED BY INTERNAL COMMAND"), ""),
        (DAEMON, ""),
        (WARNING, ""),
        (b"errmgr:dvm: ", ""),
    ],
)
def test_a_report_names_the_rank_that_failed(printed, rank):
    assert failed_rank(printed) == rank
