"""`horovodrun` in a launcher: it finds its workers and starts its ranks in them.

`horovodrun` is real. The ranks are ours, because Horovod's libraries take minutes to compile.
"""

import re
import signal

import pytest
import yaml

from tests.local.environments import environment
from tests.local.run_processes import marked
from tests.local.shell import Shell, job
from tests.support.waiting import block_until

pytestmark = pytest.mark.timeout(900)  # the first run downloads Horovod

# horovodrun asks a framework module what it was compiled with.
FRAMEWORK = """
import sys, types
known = sys.modules["horovod.tensorflow"] = types.ModuleType("horovod.tensorflow")
known.mpi_built = known.gloo_built = lambda: True
"""
# The parent of a rank knows its pod: horovodrun gives ranks the variables of the launcher.
RANK = """
import os
with open(f"/proc/{os.getppid()}/environ") as file:
    parent = dict(line.partition("=")[::2] for line in file.read().split(chr(0)))
pod = {**os.environ, **parent}["MPI_OPERATOR_POD"]
if "OMPI_COMM_WORLD_RANK" in os.environ:
    from mpi4py import MPI
    number, size = MPI.COMM_WORLD.rank, MPI.COMM_WORLD.allreduce(1)
else:
    number, size = os.environ["HOROVOD_RANK"], os.environ["HOROVOD_SIZE"]
print(f"rank {number} of {size} is in {pod}", flush=True)
"""
# When it has lost another one, a rank asks for its new number, as Horovod's libraries do.
SURVIVOR = """
import os, time, urllib.request
from pathlib import Path
variable = lambda name: os.environ[f"HOROVOD_{name}"]
server = f"http://{variable('GLOO_RENDEZVOUS_ADDR')}:{variable('GLOO_RENDEZVOUS_PORT')}"
Path(f"rank-{variable('RANK')}").touch()
while not Path("survived").exists():
    time.sleep(0.1)
slot = f"{variable('HOSTNAME')}:{variable('LOCAL_RANK')}"
urllib.request.urlopen(f"{server}/rank_and_size/{slot}").read()
print("has a new number", flush=True)
time.sleep(600)
"""
# The same whenever the job has another size. A rank whose host was removed has no number.
FOLLOWER = """
import os, sys, time, urllib.request
from pathlib import Path
variable = lambda name: os.environ[f"HOROVOD_{name}"]
server = f"http://{variable('GLOO_RENDEZVOUS_ADDR')}:{variable('GLOO_RENDEZVOUS_PORT')}"
slot = f"{variable('HOSTNAME')}:{variable('LOCAL_RANK')}"
size = variable("SIZE")
print("starts as one of", size, flush=True)
while True:
    time.sleep(0.1)
    if Path("size").read_text() in ("", size):
        continue
    answer = urllib.request.urlopen(f"{server}/rank_and_size/{slot}").read().decode()
    rank, size = answer.split(",")[:2]
    if rank == "-1":
        sys.exit("has been removed from elastic job")
"""
# One of the workers fails, and its replacement does not.
FAILING = """
case $MPI_OPERATOR_POD in *-worker-1)
  until [ -e lost ]; do sleep 0.1; done
  mkdir replaced 2>/dev/null && exit 1
esac
exec sleep 600
"""
# Its cache has interfaces of clusters that no longer exist.
ALWAYS = ["-np", "2", "--disable-cache", "--network-interfaces", "lo"]
HOSTFILE = ["--hostfile", "/etc/mpi/hostfile"]
# Open MPI 5 does not understand the default binding arguments.
MPI = ["--mpi", "--binding-args=--bind-to none", *HOSTFILE]
ELASTIC = ["--gloo", "--min-np=2", "--host-discovery-script=/etc/mpi/discover_hosts.sh"]

_PATIENCE = 120  # seconds: `horovodrun` starts many a Python, one after the other


@pytest.fixture
def shell(tmp_path):
    """A shell with Horovod."""
    (tmp_path / "sitecustomize.py").write_text(FRAMEWORK)
    (tmp_path / "rank.py").write_text(RANK)
    made = Shell(tmp_path / "state", environment("OpenMPI", extra=("horovod==0.28.1",)))
    yield made
    block_until(lambda: marked(made.runs) == [])


@pytest.mark.parametrize(
    ("options", "sandbox"),
    [
        pytest.param(MPI, "plain", id="MPI, plain"),
        pytest.param(["--gloo", *HOSTFILE], "plain", id="Gloo, plain"),
        pytest.param(ELASTIC, "namespaces", id="elastic"),
    ],
)
def test_its_ranks_run_in_the_workers(shell, tmp_path, options, sandbox):
    file = job(tmp_path, ["horovodrun", *ALWAYS, *options, "python", "rank.py"])
    path = f"PYTHONPATH={tmp_path}"
    code, out, err = shell.run("run", file, "--env", path, "--sandbox", sandbox)
    assert code == 0, out + err
    ranks = re.findall(r"rank (\d) of 2 is in default/pi-worker-(\d)", out)
    assert sorted(number for number, _ in ranks) == ["0", "1"], out + err
    assert sorted(worker for _, worker in ranks) == ["0", "1"], out + err


def test_a_worker_that_is_back_and_blacklisted_is_described_with_what_helps(shell, tmp_path):
    (tmp_path / "survivor.py").write_text(SURVIVOR)
    elastic = [option.replace("min-np=2", "min-np=1") for option in ELASTIC]
    program = ["--log-level=INFO", "python", "survivor.py"]
    command = ["horovodrun", *ALWAYS, *elastic, *program]
    file = job(tmp_path, command, runPolicy={"backoffLimit": 1})
    _give_workers(file, ["sh", "-c", FAILING])
    output = tmp_path / "output"
    with output.open("w") as stream:
        run = ("run", file, "--env", f"PYTHONPATH={tmp_path}", "--sandbox", "namespaces")
        process = shell.start(*run, stdout=stream, stderr=stream)
        try:
            block_until(
                lambda: all((tmp_path / f"rank-{each}").exists() for each in range(2)), _PATIENCE
            )
            (tmp_path / "lost").touch()
            block_until(lambda: "exit with status code" in output.read_text(), _PATIENCE)
            (tmp_path / "survived").touch()
            block_until(lambda: "has a new number" in output.read_text(), _PATIENCE)
            block_until(lambda: "HostBlacklisted" in shell.run("describe", "pi")[1], _PATIENCE)
            described = shell.run("describe", "pi")[1]
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
    assert "blacklist failing host: pi-worker-1" in output.read_text()
    event = next(line for line in described.splitlines() if "HostBlacklisted" in line)
    assert "pi-worker-1" in event
    assert "--blacklist-cooldown-range 10 300" in event


def test_a_worker_that_left_and_came_back_is_used_again(shell, tmp_path):
    (tmp_path / "follower.py").write_text(FOLLOWER)
    size, output = tmp_path / "size", tmp_path / "output"
    size.write_text("2")
    elastic = [option.replace("min-np=2", "min-np=1") for option in ELASTIC]
    program = ["--log-level=INFO", "python", "follower.py"]
    file = job(tmp_path, ["horovodrun", *ALWAYS, *elastic, *program])
    with output.open("w") as stream:
        run = ("run", file, "--env", f"PYTHONPATH={tmp_path}", "--sandbox", "namespaces")
        process = shell.start(*run, stdout=stream, stderr=stream)
        try:
            block_until(lambda: output.read_text().count("starts as one of 2") == 2, _PATIENCE)
            shell.run("scale", "pi", "--workers", "1")
            size.write_text("1")
            block_until(
                lambda: "has been removed from elastic job" in output.read_text(), _PATIENCE
            )
            shell.run("scale", "pi", "--workers", "2")
            size.write_text("2")
            block_until(lambda: output.read_text().count("starts as one of 2") == 3, _PATIENCE)
            described = shell.run("describe", "pi")[1]
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
    assert "blacklist failing host" not in output.read_text()
    assert "HostBlacklisted" not in described


def _give_workers(file, command):
    """Let the workers of a job run a command."""
    with open(file) as opened:
        manifest = yaml.safe_load(opened)
    worker = manifest["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    worker["containers"][0]["command"] = command
    with open(file, "w") as opened:
        yaml.safe_dump(manifest, opened)
