"""The standard streams of a job are those of `mpijob run`."""

import json
import os
import pty
import subprocess
from contextlib import chdir
from pathlib import Path

import pytest
import yaml

from tests.local.conftest import KINDS
from tests.local.environments import PACKAGES, environment
from tests.local.shell import Shell, job


@pytest.fixture
def shell(tmp_path):
    return Shell(tmp_path / "state", environment("OpenMPI"))


@pytest.mark.parametrize("implementation", PACKAGES)
def test_both_outputs_of_ranks_arrive_where_they_were_printed(tmp_path, implementation):
    shell = Shell(tmp_path / "state", environment(implementation))
    command = ["mpirun", "-n", "2", "sh", "-c", "echo out; echo err >&2"]
    file = job(tmp_path, command, mpiImplementation=implementation)
    code, out, err = shell.run("run", file, "-q")
    assert (code, out, err) == (0, "out\nout\n", "err\nerr\n")
    log = shell.run("logs", "pi")[1].splitlines()
    assert sorted(log) == ["err", "err", "out", "out"]  # one log has both


@pytest.mark.parametrize("implementation", PACKAGES)
def test_lines_have_the_rank_that_printed_them(tmp_path, implementation):
    shell = Shell(tmp_path / "state", environment(implementation))
    file = job(tmp_path, ["mpirun", "-n", "2", "echo", "hi"], mpiImplementation=implementation)
    code, out, err = shell.run("run", file, "-q", "--prefix", "rank")
    assert (code, sorted(out.splitlines())) == (0, ["rank 0 | hi", "rank 1 | hi"]), err


@pytest.mark.parametrize("implementation", PACKAGES)
def test_a_line_in_pieces_has_its_rank_once(tmp_path, implementation):
    shell = Shell(tmp_path / "state", environment(implementation))
    script = (
        "for piece in ValueError: ' no' '\n'; do printf \"$piece\" >&2; sleep 0.2; done; exit 1"
    )
    file = job(
        tmp_path, ["mpirun", "-n", "1", "sh", "-c", script], mpiImplementation=implementation
    )
    code, _, err = shell.run("run", file, "-q", "--prefix", "rank")
    assert code == 1
    assert "rank 0 | ValueError: no\n" in err
    assert "failed: ValueError: no (" in err.splitlines()[-1]


def test_ranks_of_a_script_cannot_be_named(shell, tmp_path):
    code, _, err = shell.run("run", job(tmp_path, ["sh", "-c", "x"]), "--prefix", "rank")
    assert code == 2
    assert "give --tag-output to mpirun yourself" in err


@pytest.mark.parametrize("implementation", PACKAGES)
def test_standard_input_reaches_rank_0(tmp_path, implementation):
    shell = Shell(tmp_path / "state", environment(implementation))
    file = job(tmp_path, ["mpirun", "-n", "1", "cat"], mpiImplementation=implementation)
    process = shell.start("run", file, "-q", stdin=subprocess.PIPE)
    assert process.communicate("hello\n" * 3, timeout=60) == ("hello\n" * 3, "")


@pytest.mark.parametrize("sandbox", KINDS)
@pytest.mark.parametrize("shape", [["-np", "2"], ["--workers", "2"]], ids=" ".join)
def test_rank_0_of_open_mpi_reads_all_of_its_input(shell, shape, sandbox):
    """Bare `mpirun` of Open MPI 5.0 does not tell it that the input has ended."""
    text = "".join(f"{number}\n" for number in range(50_000))
    options = ("-q", "--sandbox", sandbox, *shape)
    process = shell.start("run", *options, "cat", stdin=subprocess.PIPE)
    assert process.communicate(text, timeout=60) == (text, "")


@pytest.mark.parametrize("sandbox", KINDS)
@pytest.mark.parametrize("shape", [["-np", "2"], ["--workers", "2"]], ids=" ".join)
def test_rank_0_of_open_mpi_may_have_nothing_to_read(shell, shape, sandbox):
    options = ("-q", "--sandbox", sandbox, *shape)
    process = shell.start("run", *options, "cat", stdin=subprocess.DEVNULL)
    assert (process.communicate(timeout=60), process.returncode) == (("", ""), 0)


def test_a_job_in_the_background_has_nothing_to_read(shell):
    assert shell.run("run", "--detach", "-np", "1", "cat")[0] == 0
    assert shell.run("wait", "cat", "--timeout", "30")[0] == 0


def test_a_script_reads_the_input_of_its_launcher(shell, tmp_path):
    file = job(tmp_path, ["sh", "-c", "read name; mpirun -n 1 echo $name; cat"])
    process = shell.start("run", file, "-q", stdin=subprocess.PIPE)
    assert process.communicate("Ann\nrest\n", timeout=60)[0].startswith("Ann\n")


SPAWN = """\
import os, sys
from mpi4py import MPI
parent = MPI.Comm.Get_parent()
if parent == MPI.COMM_NULL:
    child = MPI.COMM_SELF.Spawn(sys.executable, [__file__], maxprocs=1)
    has_other_input = child.recv() != os.fstat(0).st_ino
    child.Disconnect()
    print(has_other_input, sys.stdin.read())
else:
    parent.send(os.fstat(0).st_ino, dest=0)
    parent.Disconnect()
"""


def test_ranks_that_are_spawned_do_not_read_it(shell, tmp_path):
    (tmp_path / "spawn.py").write_text(SPAWN)
    program = ("-np", "1", "--slots", "2", "python", str(tmp_path / "spawn.py"))
    process = shell.start("run", "-q", *program, stdin=subprocess.PIPE)
    assert process.communicate("all", timeout=60) == ("True all\n", "")


def test_a_terminal_is_standard_input_too_and_a_progress_bar_is_live(shell, tmp_path):
    script = "printf 'name? '; read name; printf '10%%\\r'; read more; echo bye $name"
    ours, theirs = pty.openpty()
    process = shell.start(
        "run",
        job(tmp_path, ["sh", "-c", script]),
        "-q",
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: os.close(os.open(os.ttyname(theirs), os.O_RDWR)),  # controls it
    )
    os.close(theirs)
    for expected, typed in (
        (b"name? ", b"Ann\n"),
        (b"10%\r", b"\n"),  # while the line is not complete
        (b"bye Ann", b""),
    ):
        assert expected in until(ours, expected)
        os.write(ours, typed)
    assert process.wait(30) == 0
    os.close(ours)


def test_open_mpi_passes_on_the_beginning_of_a_line_to_a_terminal(shell):
    """A bar that one rank draws moves, although Open MPI 5 waits for the end of a line."""
    ours, theirs = pty.openpty()
    rank = "printf '10%%\\r'; until [ -e go ]; do sleep 0.05; done; echo done"
    with chdir(shell.runs.parents[2]):
        streams = {"stdout": theirs, "stderr": theirs, "stdin": subprocess.DEVNULL}
        process = shell.start("run", "-q", "-np", "1", "--", "sh", "-c", rank, **streams)
        os.close(theirs)
        assert b"10%\r" in until(ours, b"10%\r")
        Path("go").touch()
        assert b"done" in until(ours, b"done")
        assert process.wait(30) == 0
    os.close(ours)


def until(terminal: int, expected: bytes) -> bytes:
    seen = b""
    while expected not in seen and (part := os.read(terminal, 4096)):
        seen += part
    return seen


def test_a_slow_reader_gets_everything(shell, tmp_path):
    with shell.start("run", job(tmp_path, ["seq", "200000"]), "-q") as process:
        for number in range(1, 2000):  # more than a pipe holds is still to come
            assert process.stdout.readline() == f"{number}\n"
        rest = process.stdout.read().split()
    assert (process.returncode, rest[0], rest[-1], len(rest)) == (0, "2000", "200000", 198_001)


def test_the_output_of_an_init_container_is_shown_and_kept(shell, tmp_path):
    file = Path(job(tmp_path, ["echo", "main"]))
    manifest = yaml.safe_load(file.read_text())
    pod = manifest["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
    pod["initContainers"] = [{"name": "fetch", "image": "x", "command": ["echo", "init"]}]
    file.write_text(yaml.safe_dump(manifest))
    code, out, err = shell.run("run", str(file), "-q", "--prefix", "pod", "--keep")
    assert (code, out) == (0, "launcher/fetch | init\nlauncher | main\n"), err
    [kept] = (shell.runs.parent / "finished").glob("*/logs/*launcher*/fetch/0.log")
    assert kept.read_text() == "init\n"
    assert shell.run("logs", "pi")[1] == "init\nmain\n"
    assert shell.run("logs", "pi", "--tail", "5")[1] == "main\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["nothing.yaml"], "nothing.yaml", id="no file"),
        pytest.param(["job.yaml", "--set", "x"], "invalid --set x", id="a bad setting"),
    ],
)
def test_errors_before_the_start_are_json_too(shell, tmp_path, arguments, message):
    file = job(tmp_path, ["true"])
    words = [word.replace("job.yaml", file) for word in arguments]
    code, out, err = shell.run("run", *words, "-o", "json")
    record = json.loads(out)
    assert (code, err) == (2, "")
    assert (record["type"], record["exitCode"]) == ("error", 2)
    assert message in record["message"]
