"""`horovodrun` in a launcher: it finds its workers and starts its ranks in them.

`horovodrun` is real. The ranks are ours, because Horovod's libraries take minutes to compile.
"""

import re

import pytest

from tests.local.conftest import marked
from tests.local.environments import environment
from tests.local.shell import Shell, job
from tests.support.waiting import block_until

pytestmark = pytest.mark.timeout(300)  # the first run downloads Horovod

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
# Its cache has interfaces of clusters that no longer exist.
ALWAYS = ["-np", "2", "--disable-cache", "--network-interfaces", "lo"]
HOSTFILE = ["--hostfile", "/etc/mpi/hostfile"]
# Open MPI 5 does not understand the default binding arguments.
MPI = ["--mpi", "--binding-args=--bind-to none", *HOSTFILE]
ELASTIC = ["--gloo", "--min-np=2", "--host-discovery-script=/etc/mpi/discover_hosts.sh"]


@pytest.fixture
def shell(tmp_path):
    """A shell with Horovod."""
    (tmp_path / "sitecustomize.py").write_text(FRAMEWORK)
    (tmp_path / "rank.py").write_text(RANK)
    made = Shell(tmp_path / "state", environment("OpenMPI", extra=("horovod==0.28.1",)))
    yield made
    block_until(lambda: marked(made.runs) == [], 5)


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
