"""The cause of a failure, from what three MPIs printed (see `tests.local.record_failures`)."""

from pathlib import Path

import pytest

from mpi_operator.api.failure_cause import Failure, failure_cause

RECORDINGS = Path(__file__).parent / "failures"
HOSTS = ("pi-worker-0", "pi-worker-1")
EXPECTED = [
    ("MPI_Abort", "OpenMPI MPICH Intel", "MPI_Abort with code 3 (rank 1 on pi-worker-1)"),
    ("assertion", "OpenMPI", "AssertionError (rank 1 on pi-worker-1)"),
    ("assertion", "MPICH Intel", "AssertionError"),
    ("chained-exception", "OpenMPI MPICH Intel", "RuntimeError: no a"),
    ("directory", "OpenMPI", "Cannot execute /tmp: Permission denied"),
    ("directory", "MPICH Intel", "No permission to execute /tmp (rank 0 on pi-worker-0)"),
    ("exception-and-MPI_Abort", "OpenMPI MPICH Intel", "ValueError: boom (rank 1 on pi-worker-1)"),
    (
        "exception-group",
        "OpenMPI",
        "ExceptionGroup: two (2 sub-exceptions) (rank 1 on pi-worker-1)",
    ),
    ("exception-group", "MPICH Intel", "ExceptionGroup: two (2 sub-exceptions)"),
    ("exception-on-one-rank", "OpenMPI", "ValueError: boom (rank 1 on pi-worker-1)"),
    ("exception-on-one-rank", "MPICH Intel", "ValueError: boom"),
    ("exit-code", "OpenMPI", "exit code 3, after the line: epoch 5 (rank 0 on pi-worker-0)"),
    ("exit-code", "MPICH", "exit code 3, after the line: epoch 5"),
    ("exit-code", "Intel", "exit code 255, after the line: epoch 5"),
    ("exit-message", "OpenMPI", "the learning rate is missing (rank 1 on pi-worker-1)"),
    ("exit-message", "MPICH Intel", "the learning rate is missing"),
    (
        "kill",
        "OpenMPI MPICH Intel",
        "Killed by SIGKILL, perhaps out of memory (rank 1 on pi-worker-1)",
    ),
    ("launcher-in-Python", "OpenMPI MPICH Intel", "ModuleNotFoundError: No module named 'numppy'"),
    ("launcher-that-prints", "OpenMPI MPICH Intel", "exit code 7, after the line: badly"),
    (
        "missing-executable",
        "OpenMPI",
        "Executable not found, or not executable: ./nothing (rank 1 on pi-worker-1)",
    ),
    ("missing-executable", "MPICH", "Executable not found: ./nothing (rank 0 on pi-worker-0)"),
    ("missing-executable", "Intel", "Executable not found: ./nothing (rank 1 on pi-worker-1)"),
    ("missing-hostfile", "OpenMPI MPICH Intel", "Cannot open the hostfile /nothing"),
    ("missing-main-module", "OpenMPI", "No module named nothing (rank 0 on pi-worker-0)"),
    ("missing-main-module", "MPICH Intel", "No module named nothing"),
    (
        "missing-module",
        "OpenMPI",
        "ModuleNotFoundError: No module named 'numppy' (rank 1 on pi-worker-1)",
    ),
    ("missing-module", "MPICH Intel", "ModuleNotFoundError: No module named 'numppy'"),
    (
        "missing-script",
        "OpenMPI",
        "No such file or directory: /work/nothing.py (rank 0 on pi-worker-0)",
    ),
    ("missing-script", "MPICH Intel", "No such file or directory: /work/nothing.py"),
    ("no-mpirun", "OpenMPI MPICH Intel", "Command not found: mpirum"),
    (
        "no-permission",
        "OpenMPI",
        "Executable not found, or not executable: ./assertion.py (rank 0 on pi-worker-0)",
    ),
    (
        "no-permission",
        "MPICH Intel",
        "No permission to execute ./assertion.py (rank 0 on pi-worker-0)",
    ),
    ("no-program", "OpenMPI MPICH", "mpirun was given no program"),
    ("os.abort", "OpenMPI MPICH Intel", "Killed by SIGABRT, aborted (rank 1 on pi-worker-1)"),
    ("own-exception", "OpenMPI", "diverged: at 3 (rank 1 on pi-worker-1)"),
    ("own-exception", "MPICH Intel", "diverged: at 3"),
    (
        "segmentation-fault",
        "OpenMPI MPICH Intel",
        "Killed by SIGSEGV, segmentation fault (rank 1 on pi-worker-1)",
    ),
    ("syntax-error", "OpenMPI", "SyntaxError: invalid syntax (rank 0 on pi-worker-0)"),
    ("syntax-error", "MPICH Intel", "SyntaxError: invalid syntax"),
    ("termination", "OpenMPI MPICH Intel", "Killed by SIGTERM, terminated (rank 1 on pi-worker-1)"),
    ("too-many-ranks", "OpenMPI", "4 ranks requested, but the workers have 2 slots"),
    (
        "unknown-host",
        "OpenMPI MPICH Intel",
        "Could not resolve hostname nothing. Known hosts: pi-launcher-x, pi-worker-0, pi-worker-1",
    ),
    ("unknown-option", "OpenMPI", "mpirun does not know the option --nothing"),
    ("unknown-option", "MPICH Intel", "mpirun does not know the option nothing"),
    ("wrong-rank", "OpenMPI", "mpi4py.MPI.Exception: MPI_ERR_RANK: invalid rank"),
    (
        "wrong-rank",
        "MPICH Intel",
        "mpi4py.MPI.Exception: Invalid rank has value 99 but must be nonnegative and less than 2",
    ),
]
TABLE = [(case, mpi, cause) for case, mpis, cause in EXPECTED for mpi in mpis.split()]


def recorded(case: str, mpi: str) -> tuple[int, list[str]]:
    code, *lines = (RECORDINGS / f"{case}.{mpi}.txt").read_text().splitlines()
    return int(code), lines


@pytest.mark.parametrize(("case", "mpi", "cause"), TABLE, ids=[f"{c} {m}" for c, m, _ in TABLE])
def test_the_cause_of_a_recorded_failure(case, mpi, cause):
    code, lines = recorded(case, mpi)
    assert failure_cause(Failure(lines, code, slots=2, hosts=HOSTS)) == cause


def test_every_recording_is_in_the_table():
    names = {file.name for file in RECORDINGS.iterdir()}
    assert names == {f"{case}.{mpi}.txt" for case, mpi, _ in TABLE}


def test_a_host_is_not_guessed_if_ranks_may_be_placed_in_another_order():
    code, lines = recorded("missing-module", "OpenMPI")
    cause = failure_cause(Failure(lines, code))
    assert cause.startswith("ModuleNotFoundError: No module named 'numppy' (rank ")
    assert " on " not in cause


def test_the_exception_that_came_first_wins_over_its_consequences():
    lines = [
        "Traceback (most recent call last):",
        "ValueError: boom",
        "Traceback (most recent call last):",
        "ConnectionResetError: [Errno 104] Connection reset by peer",
    ]
    assert failure_cause(Failure(lines, 1)) == "ValueError: boom"


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        pytest.param(["ValueError: bad:", "  lr=-1"], "ValueError: bad: lr=-1", id="the next line"),
        pytest.param(["ValueError: bad:"], "ValueError: bad:", id="nothing"),
        pytest.param(
            ["Error: Invalid rank, error stack:", "f(3): g() failed", "g(1)......: no 9", "more"],
            "Error: no 9",
            id="the last error of a stack",
        ),
    ],
)
def test_what_follows_the_colon_at_the_end_of_an_exception(lines, cause):
    traceback = "Traceback (most recent call last):"
    assert failure_cause(Failure([traceback, *lines], 1)) == cause


def test_the_report_of_a_failed_rank_does_not_hide_what_was_printed_before():
    report = "[pi-launcher:00003] [prterun-pi-launcher-3@0,0] errmgr:dvm: job prterun-pi-launcher-3"
    lines = ["epoch 5", f"{report}@1 reported state FAILED TO START"]
    assert failure_cause(Failure(lines, 3)) == "exit code 3, after the line: epoch 5"


def test_a_daemon_of_prrte_that_did_not_report_back_is_named():
    lines = [
        "A daemon failed to report back after being spawned. This could",
        "be due to several factors, including inability to find the",
        "daemon executable.",
        "",
        "  Local host:    pi-launcher",
        "  Remote host:   pi-worker-0.pi.default.svc",
        "  Daemon exit status: 137",
        "",
        "check that any firewall (e.g., iptables) has been disabled and",
        "try again.",
    ]
    cause = "The daemon of mpirun on pi-worker-0 did not report back"
    assert failure_cause(Failure(lines, 137)) == cause


def test_hydra_names_the_function_that_failed_first():
    lines = [
        "[mpiexec@pi-launcher] control_cb (/hydra/pmiserv_cb.c:280): assert (!closed) failed",
        "[mpiexec@pi-launcher] main (/hydra/mpiexec.c:270): process manager error",
    ]
    assert failure_cause(Failure(lines, 255)) == "assert (!closed) failed"


def test_tracebacks_of_two_ranks_may_be_interleaved():
    lines = [
        *["Traceback (most recent call last):"] * 2,
        *['  File "a.py", line 1, in <module>'] * 2,
        *["ValueError: boom"] * 2,
    ]
    assert failure_cause(Failure(lines, 1)) == "ValueError: boom"


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        (7, "exit code 7, nothing was printed"),
        (137, "exit code 137 (SIGKILL), nothing was printed"),
        (255, "exit code 255, nothing was printed"),
    ],
)
def test_no_output_leaves_the_exit_code(code, cause):
    assert failure_cause(Failure([], code)) == cause


def test_a_banner_alone_leaves_the_exit_code_and_the_rank():
    lines = [
        "prterun detected that one or more processes exited with non-zero status,",
        "thus causing the job to be terminated. The first process to do so was:",
        "",
        "   Process name: [prterun-false-launcher-3@1,1]",
        "   Exit code:    1",
    ]
    cause = failure_cause(Failure(lines, 1, slots=2, hosts=["false-launcher"] * 2))
    assert cause == "exit code 1, nothing was printed (rank 1 on false-launcher)"


OPEN_MPI_4 = {
    "exit code 3, after the line: epoch 5 (rank 1 on pi-worker-1)": """\
epoch 5
--------------------------------------------------------------------------
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
--------------------------------------------------------------------------
--------------------------------------------------------------------------
mpirun detected that one or more processes exited with non-zero status, thus causing
the job to be terminated. The first process to do so was:

  Process name: [[40617,1],1]
  Exit code:    3
--------------------------------------------------------------------------""",
    "Executable not found, or not executable: ./nothing (rank 0 on pi-worker-0)": """\
--------------------------------------------------------------------------
mpirun was unable to launch the specified application as it could not access
or execute an executable:

Executable: ./nothing
Node: pi-worker-0

while attempting to start process rank 0.
--------------------------------------------------------------------------
2 total processes failed to start""",
}


@pytest.mark.parametrize(("cause", "printed"), OPEN_MPI_4.items(), ids=["exit code", "executable"])
def test_open_mpi_4_uses_other_words(cause, printed):
    assert failure_cause(Failure(printed.splitlines(), 1, slots=2, hosts=HOSTS)) == cause


def test_a_rank_that_was_reported_is_named_if_there_is_no_banner():
    silent = Failure([], 3, hosts=HOSTS, rank="1")
    assert failure_cause(silent) == "exit code 3, nothing was printed (rank 1 on pi-worker-1)"
    code, lines = recorded("kill", "OpenMPI")
    cause = failure_cause(Failure(lines, code, hosts=HOSTS, rank="0"))
    assert cause.endswith("(rank 1 on pi-worker-1)")  # its banner knows better


DEAD_WORKER = "pi-worker-0: container mpi failed with exit code 3"


@pytest.mark.parametrize(
    ("case", "mpi", "cause"),
    [
        pytest.param("unknown-host", "OpenMPI", DEAD_WORKER, id="a worker has no address any more"),
        pytest.param("launcher-that-prints", "MPICH", DEAD_WORKER, id="the launcher says nothing"),
        pytest.param(
            "missing-module",
            "MPICH",
            "ModuleNotFoundError: No module named 'numppy'",
            id="an exception has its own cause",
        ),
        pytest.param(
            "unknown-option",
            "MPICH",
            "mpirun does not know the option nothing",
            id="mpirun did not start",
        ),
    ],
)
def test_a_worker_that_failed_is_the_cause_of_what_it_explains(case, mpi, cause):
    code, lines = recorded(case, mpi)
    assert failure_cause(Failure(lines, code, worker=DEAD_WORKER)) == cause


@pytest.mark.parametrize(
    ("oom_kills", "cause"),
    [
        (None, "Killed by SIGKILL, perhaps out of memory"),
        (1, "Killed by SIGKILL, out of memory"),
        (0, "Killed by SIGKILL"),
    ],
)
def test_the_kernel_knows_whether_memory_ran_out(oom_kills, cause):
    code, lines = recorded("kill", "OpenMPI")
    found = failure_cause(Failure(lines, code, 2, HOSTS, oom_kills))
    assert found == f"{cause} (rank 1 on pi-worker-1)"


def test_the_name_of_the_machine_is_not_that_of_a_host():
    lines = [
        "prterun noticed that process rank 1 with PID 7 on node vm exited on",
        "signal 9 (Killed).",
    ]
    cause = failure_cause(Failure(lines, 137, slots=2, hosts=HOSTS))
    assert cause.endswith("(rank 1 on pi-worker-1)")


def test_a_long_message_is_cut():
    lines = ["Traceback (most recent call last):", "ValueError: " + "x" * 1000]
    assert len(failure_cause(Failure(lines, 1))) == 240
