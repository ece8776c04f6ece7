"""What the entry point of our images does for sshd."""

import pytest

from tests.cluster.images.manual_job import (
    ANY_UID,
    ANY_UID_WITHOUT_KEYS,
    MPIUSER,
    ROOT,
    ROOT_WITHOUT_KEYS,
    ManualJob,
)

AWKWARD = 'it\'s "so" \\ $HOME and #more '
IDENTITIES = {"root": ROOT, "mpiuser": MPIUSER, "any-uid": ANY_UID}
KEYLESS = {"root": ROOT_WITHOUT_KEYS, "any-uid": ANY_UID_WITHOUT_KEYS}


@pytest.mark.timeout(300)
def test_sessions_have_the_variables_of_the_container(cluster, namespace, loaded):
    variables = [{"name": "AWKWARD", "value": AWKWARD}, {"name": "PLAIN", "value": "1"}]
    image = loaded("pi-openmpi")
    jobs = [
        ManualJob.create(cluster, namespace, image, identity, name, env=variables)
        for name, identity in IDENTITIES.items()
    ]
    for job in jobs:
        _, host = job.wait().hosts
        assert job.ssh(host, 'printf "%s|" "$PLAIN" "$AWKWARD"') == f"1|{AWKWARD}|"


@pytest.mark.timeout(300)
def test_without_a_mounted_key_each_pod_has_a_host_key_of_its_own(cluster, namespace, loaded):
    image = loaded("pi-openmpi")
    jobs = [
        ManualJob.create(cluster, namespace, image, identity, name)
        for name, identity in KEYLESS.items()
    ]
    for job in jobs:
        scan = ("ssh-keyscan", "-q", "-p", "2222")
        keys = [job.wait().run(*scan, host) for host in job.hosts]
        assert len({key.split()[-1] for key in keys}) == 2, keys
