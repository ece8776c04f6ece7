"""What the worker container knows reaches the ranks, which sshd starts with an empty slate."""

import pytest

from mpi_operator.kube.resources import CONFIG_MAPS, SECRETS
from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import FLAVOURS, Wishes, pi, pi_as_user

# A shell as the program, one line per rank.
SHOW = ("sh", "-c", 'echo "$HOSTNAME: $PLAIN | $FROM_SECRET | $FROM_MAP"')
AWKWARD = 'it\'s "quoted" $HOME `id` \\ and  spaced'


@pytest.mark.parametrize("mpi", FLAVOURS)
async def test_variables_of_the_worker_are_those_of_its_rank(lab: Lab, mpi: str) -> None:
    await _store(lab)
    for name, make in (("root", pi), ("user", pi_as_user)):
        command = FLAVOURS[mpi].command("unused", as_root=make is pi)[:-1]
        wishes = Wishes(launcher={"command": [*command, *SHOW]}, worker=_variables())
        await lab.submit(make(name, FLAVOURS[mpi], wishes))

    for name in ("root", "user"):
        await lab.succeeds(name)
        lines = [line for line in (await lab.log(name)).splitlines() if AWKWARD in line]
        assert len(lines) == 2, await lab.account(name)
        assert all("| hidden | mapped" in line for line in lines)


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
