"""Ranks between pods of our images, started by hand: every MPI, as root and as anybody."""

import pytest

from tests.cluster.images.crew import (
    ANY_UID,
    ANY_UID_AND_GROUP,
    MPIUSER,
    ROOT,
    SERVICE,
    WORKERS,
    Crew,
    where,
)

OPEN_MPI = ("-host", ",".join(f"{worker}.{SERVICE}" for worker in WORKERS))
HYDRA = ("-hosts", ",".join(f"{worker}.{SERVICE}" for worker in WORKERS), "-ppn", "1")
HOSTS = {"openmpi": OPEN_MPI, "openmpi-4": OPEN_MPI, "mpich": HYDRA, "intel": HYDRA}
IDENTITIES = {
    "root": ROOT,
    "mpiuser": MPIUSER,
    "any uid": ANY_UID,
    "any uid and group": ANY_UID_AND_GROUP,
}


def mpirun(flavour, identity):
    needs_leave = flavour.startswith("openmpi") and identity.is_root
    return ["mpirun", *["--allow-run-as-root"] * needs_leave, *HOSTS[flavour], "-n", "2"]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("identity", IDENTITIES.values(), ids=IDENTITIES)
@pytest.mark.parametrize("flavour", HOSTS)
def test_ranks_run_in_both_pods(flavour, identity, cluster, namespace, loaded):
    crew = Crew.hire(cluster, namespace, loaded(f"pi-{flavour}"), identity)
    command = mpirun(flavour, identity)
    output = crew.run(*command, "/home/mpiuser/pi", "100000")
    assert where(output) == {0: "worker-0", 1: "worker-1"}, output
    assert "pi is about 3.1" in output
    output = crew.run(*command, "python3", "/home/mpiuser/pi.py", "100000")
    assert where(output) == {0: "worker-0", 1: "worker-1"}, output


@pytest.mark.timeout(300)
def test_training_runs_in_both_pods(cluster, namespace, loaded):
    crew = Crew.hire(cluster, namespace, loaded("allreduce-benchmark"), MPIUSER)
    command = [*mpirun("openmpi", MPIUSER), "--bind-to", "none"]
    output = crew.run(*command, "python3", "/home/mpiuser/train.py", "--num-batches=5")
    assert "Ranks:       ['worker-0', 'worker-1']" in output
    assert "all 2 ranks have the same weights" in output
