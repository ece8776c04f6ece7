"""What pods print, as it is written."""

import io
from datetime import UTC, datetime

import pytest

from mpi_operator.cli.job_output.job_stream import Line
from mpi_operator.cli.job_output.line_splitting import split_lines
from mpi_operator.cli.job_output.line_writer import LineWriter, Prefix

NOW = datetime(2026, 1, 2, 3, 4, 5, 678_900, tzinfo=UTC)
LAUNCHER = Line("pi-launcher-x", "launcher", b"")
WORKER = Line("pi-worker-0", "worker", b"")
BAR = b"start\r50%\r100%\nend"


class Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def written(*lines: Line, prefix: Prefix, has_timestamps: bool = False) -> tuple[bytes, bytes]:
    """What is on stdout and on stderr."""
    out, err = io.BytesIO(), io.BytesIO()
    streams = io.TextIOWrapper(out), io.TextIOWrapper(err)
    writer = LineWriter(*streams, prefix, has_timestamps=has_timestamps, clock=lambda: NOW)
    for line in lines:
        writer.write(line)
    return out.getvalue(), err.getvalue()


def printed(by: Line, data: bytes, *, is_stderr: bool = False) -> list[Line]:
    return [
        by._replace(printed=text, end=end, is_stderr=is_stderr) for text, end in split_lines(data)
    ]


@pytest.mark.parametrize("data", [b"", b"a", b"a\n", b"\r\n", b"\ra\r\n\n\xff\0", BAR])
def test_pieces_are_everything_that_was_printed(data):
    assert b"".join(text + end for text, end in split_lines(data)) == data


@pytest.mark.parametrize("data", [BAR, b"\0\xff binary", b"crlf\r\n"])
def test_without_a_prefix_every_byte_is_passed_on(data):
    assert written(*printed(LAUNCHER, data), prefix=Prefix.NONE) == (data, b"")


def test_nothing_is_added_in_a_pipe():
    assert written(*printed(LAUNCHER, b"hi\n"), prefix=Prefix.AUTO)[0] == b"hi\n"


def test_a_terminal_shows_the_pod():
    shown = io.BytesIO()
    out = Terminal(shown)
    LineWriter(out, out).write(LAUNCHER._replace(printed=b"hi"))
    assert b"launcher\x1b[0m | hi\n" in shown.getvalue()


def test_standard_error_stays_standard_error():
    lines = [*printed(LAUNCHER, b"a\n"), *printed(LAUNCHER, b"b\n", is_stderr=True)]
    assert written(*lines, prefix=Prefix.POD) == (b"launcher | a\n", b"launcher | b\n")


def test_every_state_of_a_progress_bar_has_its_prefix():
    out, _ = written(*printed(LAUNCHER, BAR), prefix=Prefix.POD)
    assert out == b"launcher | start\rlauncher | 50%\rlauncher | 100%\nlauncher | end"


def test_the_parts_of_a_line_have_one_prefix():
    parts = [*printed(LAUNCHER, b"hal"), *printed(LAUNCHER, b"f\n")]
    assert written(*parts, prefix=Prefix.POD)[0] == b"launcher | half\n"


def test_a_line_of_another_pod_begins_on_a_line_of_its_own():
    lines = [*printed(LAUNCHER, b"half"), *printed(WORKER, b"b\n"), *printed(LAUNCHER, b"rest\n")]
    out, _ = written(*lines, prefix=Prefix.POD)
    assert out == b"launcher | half\nworker-0 | b\nlauncher | rest\n"


def test_lines_of_an_init_container_name_it():
    line = LAUNCHER._replace(printed=b"hi", container="fetch")
    assert written(line, prefix=Prefix.POD)[0] == b"launcher/fetch | hi\n"


def test_timestamps_come_first():
    out, _ = written(*printed(LAUNCHER, b"a\nb\n"), prefix=Prefix.NONE, has_timestamps=True)
    assert out == b"2026-01-02T03:04:05.678Z a\n2026-01-02T03:04:05.678Z b\n"


@pytest.mark.parametrize("tag", [b"[1,3]<stdout>: ", b"[3] ", b"[prterun-vm-1@1,3]<stderr>: "])
def test_the_tag_of_an_mpi_becomes_the_rank(tag):
    out, _ = written(*printed(LAUNCHER, tag + b"hi\rthere\nours\n"), prefix=Prefix.RANK)
    assert out == b"rank 3 | hi\rrank 3 | there\nlauncher | ours\n"


@pytest.mark.parametrize(
    ("pieces_of_output", "expected"),
    [
        pytest.param(
            [b"[1,0]<stdout>: a[1,1]<stdout>: b"],
            b"rank 0 | a\nrank 1 | b",
            id="two ranks that end no line",
        ),
        pytest.param(
            [b"[1,0]<stdout>: a", b"[1,1]<stdout>: b\n"],
            b"rank 0 | a\nrank 1 | b\n",
            id="the second one in a piece of its own",
        ),
        pytest.param(
            [b"[1,0]<stdout>:a", b"[1,0]<stdout>:b\n"],
            b"rank 0 | ab\n",
            id="one rank that prints a line in two parts, as Open MPI 4 tags it",
        ),
        pytest.param(
            [b"[,0]<stdout>: a[,0]<stdout>:  b", b"[,0]<stdout>: \n"],
            b"rank 0 | a b\n",
            id="one rank that prints a line in three parts, as MPICH tags it",
        ),
        pytest.param(
            [b"[1,0]<stdout>: 1%\r", b"[1,1]<stdout>: 2%\r3%"],
            b"rank 0 | 1%\rrank 1 | 2%\rrank 1 | 3%",
            id="progress bars of two ranks",
        ),
        pytest.param(
            [b"[0] x[1] = 2", b"[3] y\n"], b"rank 0 | x[1] = 2[3] y\n", id="brackets of a program"
        ),
        pytest.param([b"[" * 50_000], b"launcher | " + b"[" * 50_000, id="many brackets"),
    ],
)
def test_a_tag_within_a_line_is_that_of_another_rank(pieces_of_output, expected):
    lines = [line for data in pieces_of_output for line in printed(LAUNCHER, data)]
    assert written(*lines, prefix=Prefix.RANK)[0] == expected


@pytest.mark.parametrize(
    ("is_stderr", "expected"), [(True, b"half\nours\n"), (False, b"ours\n")], ids=["err", "out"]
)
def test_a_message_of_ours_begins_on_a_line_of_its_own(tmp_path, is_stderr, expected):
    with (tmp_path / "out").open("w") as out, (tmp_path / "err").open("w") as err:
        writer = LineWriter(out, err)
        writer.write(LAUNCHER._replace(printed=b"half", end=b"", is_stderr=is_stderr))
        writer.finish_line()
        err.write("ours\n")
    assert (tmp_path / "err").read_bytes() == expected


def test_nor_does_it_continue_a_line_on_standard_output_if_both_are_one_file(tmp_path):
    with (tmp_path / "both").open("w") as out, (tmp_path / "both").open("a") as err:
        writer = LineWriter(out, err)
        writer.write(LAUNCHER._replace(printed=b"half", end=b""))
        writer.finish_line()
        err.write("ours\n")
    assert (tmp_path / "both").read_bytes() == b"half\nours\n"
