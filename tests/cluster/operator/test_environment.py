"""What the worker container knows reaches the ranks, which sshd starts with an empty slate."""

from collections.abc import Callable

import pytest

from mpi_operator.kube.resources import CONFIG_MAPS, SECRETS, Manifest
from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import (
    FLAVOURS,
    OPEN_MPI,
    RANK,
    Overrides,
    one_rank_each,
    pi,
    pi_as_user,
)

# A shell as the program.
SHOW = ("sh", "-c", f'echo "{RANK} on $(hostname)"; echo "$PLAIN | $FROM_SECRET | $FROM_MAP"')
AWKWARD = 'it\'s "quoted" $HOME `id` \\ and  spaced'
USERS: dict[str, Callable[..., Manifest]] = {"root": pi, "mpiuser": pi_as_user}


@pytest.mark.parametrize("user", USERS)
async def test_variables_of_the_worker_are_those_of_its_rank(lab: Lab, user: str) -> None:
    await _store(lab)
    for mpi, flavour in FLAVOURS.items():
        command = flavour.command("unused", as_root=user == "root")[:-1]
        overrides = Overrides(launcher={"command": [*command, *SHOW]}, worker=_variables())
        await lab.submit(USERS[user](mpi, flavour, overrides))

    await lab.succeed_all(FLAVOURS)

    for mpi in FLAVOURS:
        lines = (await lab.log(mpi)).splitlines()
        assert lines.count(f"{AWKWARD} | hidden | mapped") == 2, await lab.account(mpi)
        assert await lab.ranks(mpi) == one_rank_each(mpi)


async def test_the_entry_point_of_our_images_passes_them_on_too(lab: Lab) -> None:
    await _store(lab)
    command = [*OPEN_MPI.command()[:-1], *SHOW]
    only_args = {"args": ["/usr/sbin/sshd", "-De"], **_variables()}
    await lab.submit(pi(overrides=Overrides(launcher={"command": command}, worker=only_args)))

    await lab.succeeds("pi")

    lines = (await lab.log("pi")).splitlines()
    assert lines.count(f"{AWKWARD} | hidden | mapped") == 2, await lab.account("pi")
    assert await lab.ranks("pi") == one_rank_each("pi")


async def _store(lab: Lab) -> None:
    await lab.client.create(
        SECRETS,
        {"metadata": {"name": "s", "namespace": lab.namespace}, "stringData": {"k": "hidden"}},
    )
    await lab.client.create(
        CONFIG_MAPS,
        {"metadata": {"name": "c", "namespace": lab.namespace}, "data": {"FROM_MAP": "mapped"}},
    )


def _variables() -> dict[str, object]:
    secret = {"secretKeyRef": {"name": "s", "key": "k"}}
    return {
        "env": [{"name": "PLAIN", "value": AWKWARD}, {"name": "FROM_SECRET", "valueFrom": secret}],
        "envFrom": [{"configMapRef": {"name": "c"}}],
    }
