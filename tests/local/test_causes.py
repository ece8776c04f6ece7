"""The last line of `mpijob run` names the cause of a failure, with every MPI."""

import os
import re
from pathlib import Path

import pytest
import yaml

from tests.local.environments import PACKAGES, environment
from tests.local.shell import Shell, job
from tests.support.waiting import block_until

ON_RANK_1 = "(rank 1 on pi-worker-1)"


@pytest.mark.parametrize("implementation", PACKAGES)
def test_a_module_that_one_rank_lacks_is_named_with_its_rank(tmp_path, implementation):
    shell = Shell(tmp_path / "state", environment(implementation))
    (tmp_path / "train.py").write_text(
        "from mpi4py import MPI\nif MPI.COMM_WORLD.rank == 1:\n    import nunpy\n"
    )
    # With `-m mpi4py` an exception aborts all ranks, and every MPI says which one.
    command = ["mpirun", "-n", "2", "python", "-m", "mpi4py", "train.py"]
    code, _, err = shell.run("run", job(tmp_path, command, mpiImplementation=implementation), "-q")
    last = err.splitlines()[-1]
    why = f"ModuleNotFoundError: No module named 'nunpy' {ON_RANK_1}"
    assert re.fullmatch(rf"pi failed: {re.escape(why)} \(exit code {code}, \d+\.\ds\)", last)


@pytest.mark.parametrize("implementation", PACKAGES)
def test_a_rank_that_is_killed_is_named_with_its_signal(tmp_path, implementation):
    shell = Shell(tmp_path / "state", environment(implementation))
    (tmp_path / "crash.py").write_text(
        "import os, signal, time\n"
        "if os.environ.get('OMPI_COMM_WORLD_RANK', os.environ.get('PMI_RANK')) == '1':\n"
        "    os.kill(os.getpid(), signal.SIGSEGV)\n"
        "time.sleep(30)\n"
    )
    command = ["mpirun", "-n", "2", "python", "crash.py"]
    _, _, err = shell.run("run", job(tmp_path, command, mpiImplementation=implementation), "-q")
    why = f"pi failed: Killed by SIGSEGV, segmentation fault {ON_RANK_1}"
    assert err.splitlines()[-1].startswith(why)


def test_a_worker_that_fails_is_named_instead_of_the_host_that_cannot_be_reached(tmp_path):
    shell = Shell(tmp_path / "state", environment("OpenMPI"))
    file = Path(job(tmp_path, ["mpirun", "hostname"], runPolicy={"backoffLimit": 0}))
    manifest = yaml.safe_load(file.read_text())
    pod = manifest["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    pod["initContainers"] = [{"name": "load", "image": "none", "command": ["sh", "-c", "exit 3"]}]
    file.write_text(yaml.safe_dump(manifest))
    _, _, err = shell.run("run", str(file), "-q")
    why = r"pi-worker-\d( \(and 1 more\))?: init container load failed with exit code 3"
    assert re.match(f"pi failed: {why}", err.splitlines()[-1])


@pytest.fixture
def small_memory():
    """A cgroup with little memory: the processes in it, and their limit, are files."""
    limits = {"memory": "memory.limit_in_bytes", ".": "memory.max"}  # of versions 1 and 2
    for place, limit in limits.items():
        group = Path("/sys/fs/cgroup", place, f"mpijob-test-{os.getpid()}")
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / limit).write_text("300M")
            yield group / "cgroup.procs"
            return
        except OSError:
            continue
        finally:
            _wait_until_empty(group)
            group.rmdir()
    pytest.skip("no cgroup can be created here, so the kernel kills nothing for lack of memory")


def _wait_until_empty(group: Path) -> None:
    block_until(lambda: not (group / "cgroup.procs").read_text())


def test_a_rank_that_the_kernel_kills_for_lack_of_memory_is_named(tmp_path, small_memory):
    shell = Shell(tmp_path / "state", environment("OpenMPI"))
    rank = "import os, time; os.environ['OMPI_COMM_WORLD_RANK'] == '1' and bytearray(1 << 30)\n"
    (tmp_path / "large.py").write_text(f"{rank}time.sleep(30)\n")
    enter = f"open({str(small_memory)!r}, 'w').write('0')"
    process = shell.start(
        "run", "-q", "-np", "2", "python", str(tmp_path / "large.py"), before=enter
    )
    _, err = process.communicate(timeout=60)
    why = "large failed: Killed by SIGKILL, out of memory (rank 1 on large-launcher) (exit code 137"
    assert err.splitlines()[-1].startswith(why), err


def test_a_deadline_is_the_cause_whatever_the_launcher_printed(tmp_path):
    shell = Shell(tmp_path / "state", environment("OpenMPI"))
    command = ["sh", "-c", "echo error: none; sleep 60"]
    file = job(tmp_path, command, runPolicy={"activeDeadlineSeconds": 2})
    _, _, err = shell.run("run", file)
    assert "Job was active longer than specified deadline" in err.splitlines()[-1]
