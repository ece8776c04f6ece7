"""Each MPI with our remote shell, over a real sshd: what pods do, without pods."""

import os
import subprocess

import pytest

from mpi_operator.build.scripts import EVENT, REMOTE_SHELL, WORKER, Event
from mpi_operator.mpi_variables import MPIS
from tests.local.environments import PACKAGES, environment
from tests.local.scripts import Scripts
from tests.support.sshd import SSHD, Sshd
from tests.support.waiting import block_until

pytestmark = [
    pytest.mark.skipif(SSHD is None, reason="needs sshd (Debian: openssh-server)"),
    pytest.mark.timeout(300),  # the first time, wheels are fetched: 330 MB for Intel's
]

HOSTS = ("pi-worker-0.pi.lab.svc", "pi-worker-1.pi.lab.svc")
# MPICH does not read the variable that the Go operator sets, and this one gets our options through.
ARGUMENTS = {
    "OpenMPI": "PRTE_MCA_plm_ssh_args",
    "MPICH": "HYDRA_LAUNCHER_EXTRA_ARGS",
    "Intel": "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS",
}
AS_ROOT = {
    f"{prefix}_ALLOW_RUN_AS_ROOT{suffix}": "1"
    for prefix in ("OMPI", "PRTE")
    for suffix in ("", "_CONFIRM")
}


class Job:
    """A launcher and two workers, all on this machine."""

    def __init__(self, directory, implementation):
        self.scripts = Scripts(directory, "dash")
        (directory / "sshd").mkdir()
        self.sshd = Sshd(directory / "sshd")
        self._implementation = implementation
        self._made = environment(implementation)

    def keep_environment(self, **variables):
        """What a worker does first."""
        command = self.scripts.command(WORKER, "true")
        subprocess.run(command, env=self._usual() | variables, check=True)

    def mpirun(self, script, **variables):
        agent = self.scripts.directory / REMOTE_SHELL
        agent.chmod(0o755)
        mpi = MPIS[self._implementation]
        hostfile = self.scripts.directory / "hostfile"
        lines = (mpi.host_line.format(host=host, slots=1) for host in HOSTS)
        hostfile.write_text("\n".join(lines) + "\n")
        ours = dict(mpi.launcher)
        for shell in mpi.remote_shells:
            ours |= shell.environment
        ours = {
            name: value.format(hostfile=hostfile, slots=1, script=agent)
            for name, value in ours.items()
        }
        ours |= {ARGUMENTS[self._implementation]: f"-F {self.sshd.client}"}
        return subprocess.Popen(
            [str(self._made.mpirun), "-n", "2", "sh", "-c", script],
            env=self._usual() | ours | variables | {"TMPDIR": str(self.scripts.directory)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _usual(self):
        path = f"{self._made.directory}/bin:{os.environ['PATH']}"
        library = f"{self._made.directory}/lib"
        return {**os.environ, "PATH": path, "LD_LIBRARY_PATH": library, **AS_ROOT}


@pytest.fixture(params=PACKAGES)
def job(request, tmp_path):
    made = Job(tmp_path, request.param)
    yield made
    made.sshd.stop()


def test_mpirun_waits_for_workers_and_ranks_have_their_environment(job):
    job.keep_environment(MINE="the worker's own")
    process = job.mpirun('echo "rank sees $MINE"')
    logs = job.scripts.directory
    block_until(lambda: any(log.stat().st_size for log in logs.glob("mpi-remote-shell.*")))
    job.sshd.start()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert out.splitlines() == ["rank sees the worker's own"] * 2


# The others always end with an error, which says enough. Open MPI does so if it notices the end of
# the session before that of the daemon's connection, which is seldom.
@pytest.mark.parametrize("job", ["OpenMPI"], indirect=True)
def test_a_worker_that_breaks_off_is_recorded_where_mpirun_may_exit_with_0(job):
    job.keep_environment()
    job.sshd.start()
    process = job.mpirun("echo started; sleep 600")
    for _ in HOSTS:
        process.stdout.readline()
    job.sshd.break_off_one_session()
    _, err = process.communicate(timeout=60)
    assert process.returncode in (0, 255), err
    block_until(lambda: bool(job.scripts.last_words.read_text()))
    [word] = job.scripts.last_words.read_text().splitlines()
    assert word.startswith(f"{EVENT}{Event.LOST} worker=pi-worker-")


def test_mpirun_ends_when_the_remote_shell_times_out(job):
    process = job.mpirun("true", MPI_OPERATOR_INIT_TIMEOUT="0")
    _, err = process.communicate(timeout=60)
    assert process.returncode != 0
    assert f"{EVENT}{Event.GAVE_UP} worker=pi-worker-" in err
    assert f"{EVENT}{Event.GAVE_UP} worker=pi-worker-" in job.scripts.last_words.read_text()
