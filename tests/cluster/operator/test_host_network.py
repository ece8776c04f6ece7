"""On the network of the node, where all pods share its ports, and its name."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import pytest

from mpi_operator.kube.resources import Manifest
from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import (
    FLAVOURS,
    OPEN_MPI,
    RANK,
    Flavour,
    Overrides,
    one_rank_each,
    pi,
    pi_as_user,
)

Maker: TypeAlias = Callable[..., Manifest]
USERS: dict[str, Maker] = {"root": pi, "mpiuser": pi_as_user}
# The host name is that of the node, so a rank has to say in another way where it is.
POD_NAME = {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
PROGRAM = ("sh", "-c", f'echo "{RANK} on $POD_NAME"; exec /home/mpiuser/pi 100000 >/dev/null')
HERE = {"nodeSelector": {"kubernetes.io/hostname": "node-0"}}
# Without the spread of other jobs: all on one node.
CROWDED = {"hostNetwork": True, "topologySpreadConstraints": [], **HERE}


async def test_a_worker_on_the_network_of_its_node(lab: Lab) -> None:
    overrides = replace(saying_where(pi, OPEN_MPI, ranks=1), workers=1, pod={"hostNetwork": True})
    await lab.submit(pi(overrides=overrides))

    await lab.succeeds("pi")

    assert await lab.ranks("pi") == one_rank_each("pi", workers=1)
    assert await lab.restarts("pi") == 0


@pytest.mark.parametrize(
    ("user", "policy"),
    [
        ("root", "AtStartup"),
        # Then the names of the workers are known: Open MPI 4 sees that all are its own address.
        ("mpiuser", "WaitForWorkersReady"),
    ],
)
async def test_several_workers_of_several_jobs_on_one_node(
    lab: Lab, user: str, policy: str
) -> None:
    for mpi, flavour in FLAVOURS.items():
        make = USERS[user]
        overrides = replace(saying_where(make, flavour), pod=CROWDED)
        job = make(mpi, flavour, overrides)
        await lab.submit({**job, "spec": {**job["spec"], "launcherCreationPolicy": policy}})

    await lab.succeed_all(FLAVOURS)

    for mpi in FLAVOURS:
        assert await lab.ranks(mpi) == one_rank_each(mpi)
        assert await lab.nodes(mpi) == {"node-0"}
        assert await lab.restarts(mpi) == 0


def saying_where(make: Maker, flavour: Flavour, ranks: int = 2) -> Overrides:
    """Ranks say in which pod they are."""
    *command, _ = flavour.command(ranks=ranks, as_root=make is pi)
    return Overrides(launcher={"command": [*command, *PROGRAM]}, worker={"env": [POD_NAME]})
