"""The identity of a pod."""

import pytest

from mpi_operator.kube.config import ConfigError, in_cluster
from tests.unit.kube.config import pki
from tests.unit.kube.config.factories import Clock, write

POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture
def account(tmp_path):
    write(tmp_path / "token", "one\n")
    write(tmp_path / "ca.crt", pki.authority().pem)
    write(tmp_path / "namespace", "ns")
    return tmp_path


@pytest.mark.parametrize(
    ("environ", "server", "namespace"),
    [
        pytest.param(POD, "https://10.0.0.1:443", "ns", id="IPv4"),
        pytest.param(
            POD | {"KUBERNETES_SERVICE_HOST": "fd00::1"}, "https://[fd00::1]:443", "ns", id="IPv6"
        ),
        pytest.param(
            POD | {"POD_NAMESPACE": "mine"}, "https://10.0.0.1:443", "mine", id="a given namespace"
        ),
    ],
)
async def test_what_a_pod_finds(account, environ, server, namespace):
    config = in_cluster(account=account, environ=environ)
    assert (config.server, config.namespace, config.proxy) == (server, namespace, None)
    assert (config.tls.ca or "").strip() == pki.authority().pem.strip()
    assert (await config.credentials.current()).headers == (("Authorization", "Bearer one"),)


async def test_the_token_is_read_again(account):
    clock = Clock()
    config = in_cluster(account=account, environ=POD, clock=clock)
    old = await config.credentials.current()
    write(account / "token", "two")
    assert await config.credentials.current() == old
    clock.time += 60
    assert await config.credentials.current() != old
    write(account / "token", "three")
    assert await config.credentials.refused(await config.credentials.current())


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        pytest.param("token", "token: No such file", id="no token"),
        pytest.param("ca.crt", "ca.crt: No such file", id="no authority"),
    ],
)
def test_a_missing_file_is_explained(account, missing, message):
    (account / missing).unlink()
    with pytest.raises(ConfigError, match=message):
        in_cluster(account=account, environ=POD)


def test_without_a_namespace_it_is_the_default_one(account):
    (account / "namespace").unlink()
    assert in_cluster(account=account, environ=POD).namespace == "default"


def test_outside_of_a_pod_there_is_nothing(account):
    with pytest.raises(ConfigError, match="KUBERNETES_SERVICE_PORT not set"):
        in_cluster(account=account, environ={"KUBERNETES_SERVICE_HOST": "10.0.0.1"})
