"""Every example, run with the command in its first lines."""

import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from mpi_operator.local.sandbox.protocol import Kind
from tests.local.environments import Environment, environment
from tests.local.run_processes import marked
from tests.local.shell import ROOT, Shell
from tests.local.users import CurrentUser, unprivileged_user
from tests.support.waiting import block_until

pytestmark = pytest.mark.timeout(300)  # the first run downloads wheels: 330 MB for Intel MPI

EXAMPLES = ROOT / "examples"
NUMPY = ("numpy==2.3.5",)
COMMAND = "spec.mpiReplicaSpecs.Launcher.template.spec.containers.0.command"
ALLREDUCE = "world.Allreduce(MPI.IN_PLACE, shared)"
PROGRESS = re.compile(
    r"^(\d+)\timages/sec: [\d.]+ \+/- [\d.]+ \(jitter = [\d.]+\)\t([\d.]+)$", re.M
)


@contextmanager
def shell_of(user: CurrentUser, mpi: Environment, **variables: str) -> Iterator[Shell]:
    """A shell that leaves no process."""
    made = user.shell(mpi, variables)
    yield made
    block_until(lambda: marked(made.runs) == [])


# --- all of them: in both kinds of sandbox, as root and as an unprivileged user


@contextmanager
def user_called(name: str, home: Path) -> Iterator[CurrentUser]:
    """The user that runs an example."""
    if name == "root":
        yield CurrentUser(home)
        return
    with unprivileged_user() as made:
        yield made


@dataclass(frozen=True)
class Example:
    file: str
    implementation: str
    result: str
    packages: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    is_compiled: bool = False
    workers: int = 2
    """How many certainly have a rank."""

    @property
    def job(self) -> str:
        return Path(self.file).stem

    def __str__(self) -> str:
        return f"{self.job} with {self.implementation}"


PI = "pi is about 3.1"
TRAIN = "[mpirun, --bind-to, none, python3, train.py, --num-batches=10]"
ALL = [
    Example("pi/pi.yaml", "OpenMPI", PI),
    Example("pi/pi-mpich.yaml", "MPICH", PI),
    Example("pi/pi-intel.yaml", "Intel", PI),
    Example("pi/pi-c.yaml", "OpenMPI", PI, is_compiled=True),
    Example("v1/pi-v1.yaml", "OpenMPI", PI),
    Example("v1alpha2/pi-v1alpha2.yaml", "OpenMPI", PI),
    Example("v1alpha1/pi-v1alpha1.yaml", "OpenMPI", PI),
    Example("v1alpha1/mpi-job-simple.yaml", "OpenMPI", PI),
    Example("v1alpha1/mpi-job-custom.yaml", "OpenMPI", PI),
    Example(
        "v1alpha2/allreduce-benchmark.yaml",
        "OpenMPI",
        "all 2 ranks have the same weights",
        packages=NUMPY,
        workers=1,
    ),
    Example(
        "v1/elastic-v1.yaml",
        "OpenMPI",
        "1 rounds are done",
        options=("--env", "ROUNDS=1", "--env", "STEPS=5"),
        workers=0,  # it begins with those that run first
    ),
    Example(
        "allreduce-benchmark/train.yaml",
        "OpenMPI",
        "all 2 ranks have the same weights",
        packages=NUMPY,
        options=("--set", f"{COMMAND}={TRAIN}"),
    ),
    Example("checkpoint/checkpoint.yaml", "OpenMPI", PI),
    Example(
        "elastic/elastic.yaml",
        "OpenMPI",
        "1 rounds are done",
        options=("--env", "ROUNDS=1", "--env", "STEPS=5"),
    ),
]


# The fourth pair, root and plain, is covered by `test_mpi`.
@pytest.mark.parametrize(
    ("name", "kind"),
    [("root", Kind.NAMESPACES), ("nobody", Kind.NAMESPACES), ("nobody", Kind.PLAIN)],
    ids=["root, namespaces", "nobody, namespaces", "nobody, plain"],
)
@pytest.mark.parametrize("example", ALL, ids=str)
def test_an_example_runs(tmp_path, name, kind, example):
    with user_called(name, tmp_path) as user:
        mpi = user.mpi(example.implementation, *example.packages)
        file = EXAMPLES / example.file
        if example.is_compiled:
            file = compiled(mpi, user.home / "program") / file.name
        with shell_of(user, mpi, CUDA_VISIBLE_DEVICES="0,1") as shell:
            code, out, err = shell.run("run", str(file), "--sandbox", kind.value, *example.options)
        left = [entry.name for entry in shell.runs.iterdir()]
    assert code == 0, out + err
    assert example.result in out, out
    workers = [f"{example.job}-worker-{index}" for index in range(example.workers)]
    assert all(host_of(worker, kind) in out for worker in workers), out
    assert left == [".lock"]


def host_of(worker: str, kind: Kind) -> str:
    """The host name that ranks of a worker see: without namespaces, the machine's."""
    return worker if kind is Kind.NAMESPACES else socket.gethostname()


def compiled(mpi: Environment, place: Path) -> Path:
    """A copy of the directory of pi.c, with the compiled program."""
    if not shutil.which("cc"):
        pytest.skip("there is no C compiler")
    shutil.copytree(EXAMPLES / "pi", place)
    mpicc = str(mpi.directory / "bin" / "mpicc")
    compile_c = [mpicc, "-O2", "-Wall", "-Werror", "-o", "pi", "pi.c"]
    subprocess.run(compile_c, cwd=place, check=True)
    return place


def test_pi_in_c_is_the_same_with_mpich(tmp_path):
    mpi = environment("MPICH")
    file = compiled(mpi, tmp_path / "program") / "pi-c.yaml"
    with shell_of(CurrentUser(tmp_path), mpi) as shell:
        code, out, err = shell.run("run", str(file), "--set", "implementation=MPICH")
    assert code == 0, out + err
    assert PI in out


# --- the benchmark


@pytest.fixture
def trainer(tmp_path):
    with shell_of(CurrentUser(tmp_path / "state"), environment("OpenMPI", extra=NUMPY)) as shell:
        yield shell


def train(shell: Shell, place: Path, *flags: str) -> tuple[int, str]:
    """Exit code and output of a training."""
    command = ", ".join(["mpirun", "--bind-to", "none", "python3", "train.py", *flags])
    setting = f"{COMMAND}=[{command}]"
    code, out, err = shell.run("run", str(place / "train.yaml"), "--set", setting)
    return code, out + err


def test_the_benchmark_prints_its_speed_and_a_falling_loss(trainer):
    code, out, err = trainer.run("run", str(EXAMPLES / "allreduce-benchmark" / "train.yaml"))
    assert code == 0, out + err
    lines = PROGRESS.findall(out)
    assert [int(step) for step, _ in lines] == [1, *range(10, 101, 10)]
    assert float(lines[-1][1]) < 0.7 * float(lines[0][1])
    assert "Ranks:       ['train-worker-0', 'train-worker-1']" in out
    assert re.search(r"^total images/sec: \d+\.\d\d$", out, re.M)
    assert "all 2 ranks have the same weights" in out


def test_a_seed_determines_the_losses(trainer):
    place = EXAMPLES / "allreduce-benchmark"
    runs = [
        PROGRESS.findall(train(trainer, place, "--num-batches=10", f"--seed={seed}")[1])
        for seed in (5, 5, 6)
    ]
    assert len(runs[0]) == 2
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_a_loss_that_does_not_fall_fails_the_job(trainer):
    place = EXAMPLES / "allreduce-benchmark"
    code, output = train(trainer, place, "--learning-rate=0", "--num-batches=5")
    assert "the loss did not fall" in output, output
    assert code == 1, output


def test_ranks_that_disagree_fail_the_job(trainer, tmp_path):
    place = tmp_path / "train"
    shutil.copytree(EXAMPLES / "allreduce-benchmark", place)
    program = (place / "train.py").read_text()
    assert ALLREDUCE in program
    (place / "train.py").write_text(program.replace(ALLREDUCE, "pass"))
    code, output = train(trainer, place, "--num-batches=5")
    assert "the ranks do not have the same weights" in output, output
    assert code == 1, output


# --- checkpoint


def test_the_checkpoint_example_continues_where_the_last_run_ended(shell):
    file = str(EXAMPLES / "checkpoint" / "checkpoint.yaml")
    results = [shell.run("run", file) for _ in range(2)]
    assert [code for code, _, _ in results] == [0, 0], results
    assert re.search(r"after run 1: pi is about 3\.1\d+ \(400000 throws\)", results[0][1])
    assert re.search(r"after run 2: pi is about 3\.1\d+ \(800000 throws\)", results[1][1])


# --- elastic


@pytest.fixture
def shell(tmp_path):
    with shell_of(CurrentUser(tmp_path / "state"), environment("OpenMPI")) as made:
        yield made


@contextmanager
def elastic(shell: Shell, kind: Kind, rounds: int, steps: int) -> Iterator["subprocess.Popen[str]"]:
    """The elastic job, until the block ends."""
    options = (
        "-q",
        "--sandbox",
        kind.value,
        "--env",
        f"ROUNDS={rounds}",
        "--env",
        f"STEPS={steps}",
    )
    file = str(EXAMPLES / "elastic" / "elastic.yaml")
    process = shell.start("run", file, *options, stderr=subprocess.STDOUT)  # ranks print to it
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


def lines_until(process: "subprocess.Popen[str]", wanted: Callable[[str], bool]) -> list[str]:
    """The lines up to and including the first one that is wanted."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line.strip(" \n"))
        if wanted(lines[-1]):
            return lines
    raise AssertionError("the job ended first:\n" + "\n".join(lines))


def done_by(kind: Kind, workers: int) -> Callable[[str], bool]:
    hosts = ", ".join(host_of(f"elastic-worker-{worker}", kind) for worker in range(workers))
    return lambda line: f" done by {hosts}:" in line


def scale(shell: Shell, workers: int) -> None:
    code, _, err = shell.run("scale", "elastic", "--workers", str(workers))
    assert code == 0, err


def ranks(shell: Shell) -> list[int]:
    """The processes of the ranks."""
    return [pid for pid in marked(shell.runs) if command(pid).startswith(b"python3\0round.py")]


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_the_elastic_job_has_a_bar(shell):
    with elastic(shell, Kind.PLAIN, rounds=2, steps=2) as process:
        lines = lines_until(process, lambda line: line == "2 rounds are done")
    assert any(line.startswith("progress: step=1 total=2 loss=") for line in lines), lines
    assert re.search(r"progress +\[#{20}\] 2/2  loss ", shell.run("describe", "elastic")[1])


def test_the_elastic_job_grows_and_shrinks_and_keeps_its_state(shell, kind):
    with elastic(shell, kind, rounds=1000, steps=2) as process:
        lines = lines_until(process, done_by(kind, 2))
        scale(shell, 3)
        lines += lines_until(process, done_by(kind, 3))
        scale(shell, 1)
        lines += lines_until(process, done_by(kind, 1))
    found = [re.match(r"round (\d+) done .* loss ([\d.]+)$", line) for line in lines]
    ends = [(int(each[1]), float(each[2])) for each in found if each]
    assert [number for number, _ in ends] == list(range(1, len(ends) + 1))
    assert ends[-1][1] < ends[0][1]


def test_a_round_that_loses_a_worker_is_repeated_without_it(shell, kind):
    with elastic(shell, kind, rounds=1, steps=1_000_000) as process:
        lines_until(process, lambda line: line.startswith("rank 1 of 2 on "))
        scale(shell, 1)
        lines = lines_until(process, lambda line: line.startswith("rank 0 of 1 on "))
        block_until(lambda: len(ranks(shell)) == 1)
    assert "round 1 is repeated" in lines, lines
    assert "round 1 begins on elastic-worker-0" in lines
