"""Ranks between pods of our images, started by hand: every MPI, as root and as anybody."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tests.cluster.images.manual_job import (
    ANY_UID,
    ANY_UID_AND_GROUP,
    MPIUSER,
    ROOT,
    ManualJob,
    where,
)

FLAVOURS = ("openmpi", "openmpi-4", "mpich", "intel")
IDENTITIES = {
    "root": ROOT,
    "mpiuser": MPIUSER,
    "any-uid": ANY_UID,
    "any-uid-and-group": ANY_UID_AND_GROUP,
}


def mpirun(flavour, job):
    hosts, is_open = ",".join(job.hosts), flavour.startswith("openmpi")
    leave = ["--allow-run-as-root"] if is_open and job.identity.is_root else []
    return ["mpirun", *leave, *(["-host", hosts] if is_open else ["-hosts", hosts, "-ppn", "1"])]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_ranks_run_in_both_pods(flavour, cluster, namespace, loaded):
    image = loaded(f"pi-{flavour}")
    jobs = [
        ManualJob.create(cluster, namespace, image, identity, name)
        for name, identity in IDENTITIES.items()
    ]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(partial(_find_pi, flavour), jobs))


def _find_pi(flavour, job):
    """The same in C and in Python."""
    command = [*mpirun(flavour, job.wait()), "-n", "2"]
    output = job.run(*command, "/home/mpiuser/pi", "100000")
    assert where(output) == dict(enumerate(job.workers)), output
    assert "pi is about 3.1" in output
    output = job.run(*command, "python3", "/home/mpiuser/pi.py", "100000")
    assert where(output) == dict(enumerate(job.workers)), output


@pytest.mark.timeout(300)
def test_training_runs_in_both_pods(cluster, namespace, loaded):
    job = ManualJob.create(cluster, namespace, loaded("allreduce-benchmark"), MPIUSER).wait()
    command = [*mpirun("openmpi", job), "-n", "2", "--bind-to", "none"]
    output = job.run(*command, "python3", "/home/mpiuser/train.py", "--num-batches=5")
    assert f"Ranks:       {job.workers}" in output
    assert "all 2 ranks have the same weights" in output
