"""Ranks between pods of our images, started by hand: every MPI, as root and as anybody."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tests.cluster.images.crew import ANY_UID, ANY_UID_AND_GROUP, MPIUSER, ROOT, Crew, where

FLAVOURS = ("openmpi", "openmpi-4", "mpich", "intel")
IDENTITIES = {
    "root": ROOT,
    "mpiuser": MPIUSER,
    "any-uid": ANY_UID,
    "any-uid-and-group": ANY_UID_AND_GROUP,
}


def mpirun(flavour, crew):
    hosts, is_open = ",".join(crew.hosts), flavour.startswith("openmpi")
    leave = ["--allow-run-as-root"] if is_open and crew.identity.is_root else []
    return ["mpirun", *leave, *(["-host", hosts] if is_open else ["-hosts", hosts, "-ppn", "1"])]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_ranks_run_in_both_pods(flavour, cluster, namespace, loaded):
    image = loaded(f"pi-{flavour}")
    crews = [
        Crew.hire(cluster, namespace, image, identity, name)
        for name, identity in IDENTITIES.items()
    ]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(partial(_find_pi, flavour), crews))


def _find_pi(flavour, crew):
    """The same in C and in Python."""
    command = [*mpirun(flavour, crew.arrive()), "-n", "2"]
    output = crew.run(*command, "/home/mpiuser/pi", "100000")
    assert where(output) == dict(enumerate(crew.workers)), output
    assert "pi is about 3.1" in output
    output = crew.run(*command, "python3", "/home/mpiuser/pi.py", "100000")
    assert where(output) == dict(enumerate(crew.workers)), output


@pytest.mark.timeout(300)
def test_training_runs_in_both_pods(cluster, namespace, loaded):
    crew = Crew.hire(cluster, namespace, loaded("allreduce-benchmark"), MPIUSER).arrive()
    command = [*mpirun("openmpi", crew), "-n", "2", "--bind-to", "none"]
    output = crew.run(*command, "python3", "/home/mpiuser/train.py", "--num-batches=5")
    assert f"Ranks:       {crew.workers}" in output
    assert "all 2 ranks have the same weights" in output
