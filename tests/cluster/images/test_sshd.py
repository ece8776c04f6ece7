"""What the entry point of our images does for sshd."""

import pytest

from tests.cluster.images.crew import (
    ANY_UID,
    ANY_UID_WITHOUT_KEYS,
    MPIUSER,
    ROOT,
    ROOT_WITHOUT_KEYS,
    SERVICE,
    WORKERS,
    Crew,
)

AWKWARD = 'it\'s "so" \\ $HOME and #more '
IDENTITIES = {"root": ROOT, "mpiuser": MPIUSER, "any uid": ANY_UID}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("identity", IDENTITIES.values(), ids=IDENTITIES)
def test_sessions_have_the_variables_of_the_container(identity, cluster, namespace, loaded):
    variables = [{"name": "AWKWARD", "value": AWKWARD}, {"name": "PLAIN", "value": "1"}]
    crew = Crew.hire(cluster, namespace, loaded("pi-openmpi"), identity, env=variables)
    assert crew.ssh("worker-1", 'printf "%s|" "$PLAIN" "$AWKWARD"') == f"1|{AWKWARD}|"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("identity", [ROOT_WITHOUT_KEYS, ANY_UID_WITHOUT_KEYS], ids=["root", "any"])
def test_without_a_mounted_key_each_pod_has_a_host_key_of_its_own(
    identity, cluster, namespace, loaded
):
    crew = Crew.hire(cluster, namespace, loaded("pi-openmpi"), identity)
    scan = ("ssh-keyscan", "-q", "-p", "2222")
    lines = [crew.run(*scan, f"{worker}.{SERVICE}") for worker in WORKERS]
    assert len({line.split()[-1] for line in lines}) == 2, lines


@pytest.mark.timeout(300)
def test_the_operator_finds_the_environment_where_it_looks_for_it(cluster, namespace, loaded):
    variables = [{"name": "PLAIN", "value": "1"}]
    crew = Crew.hire(cluster, namespace, loaded("pi-openmpi"), ROOT, env=variables)
    crew.ssh("worker-0", "mkdir /run/mpi-operator; PLAIN=2 /entrypoint.sh sh -c true")
    assert crew.ssh("worker-0", ". /run/mpi-operator/environment; echo $PLAIN") == "2"
