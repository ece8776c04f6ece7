"""From a user of a kubeconfig to what is shown with a request."""

import logging
from pathlib import Path
from typing import Any

import pytest

from mpi_operator.kube.config import ConfigError, Credentials, from_kubeconfig
from mpi_operator.kube.config.exec_plugin import ExecCluster
from mpi_operator.kube.config.kubeconfig import read_kubeconfig
from mpi_operator.kube.config.kubeconfig_entries import credentials_of
from mpi_operator.kube.config.tls import TLS
from tests.unit.kube.config import pki
from tests.unit.kube.config.factories import Clock, b64, make_kubeconfig, write

SECRET = "s3cr3t-t0k3n"
CLUSTER = ExecCluster("https://c", TLS())


def credentials(tmp_path: Path, user: dict[str, Any], clock: Clock | None = None) -> Credentials:
    path = write(tmp_path / "config", make_kubeconfig(user=user))
    return credentials_of(read_kubeconfig(path).users["u"], CLUSTER, clock=clock or Clock())


@pytest.mark.parametrize(
    ("user", "headers"),
    [
        pytest.param({}, (), id="no user"),
        pytest.param({"token": "t"}, (("Authorization", "Bearer t"),), id="a token"),
        pytest.param({"token": "t\n"}, (("Authorization", "Bearer t"),), id="a token and newline"),
        pytest.param(
            {"username": "a", "password": "b"},
            (("Authorization", f"Basic {b64('a:b')}"),),
            id="a password",
        ),
        pytest.param(
            {"token": "t", "exec": {"command": "nowhere"}},
            (("Authorization", "Bearer t"),),
            id="a token makes a plugin superfluous",
        ),
        pytest.param(
            {"token": "t", "tokenFile": "nowhere"},
            (("Authorization", "Bearer t"),),
            id="a token stands in for a file that is not there",
        ),
        pytest.param(
            {
                "as": "jane",
                "as-uid": "7",
                "as-groups": ["a", "b"],
                "as-user-extra": {"example.org/x y": ["1", "2"]},
            },
            (
                ("Impersonate-User", "jane"),
                ("Impersonate-Uid", "7"),
                ("Impersonate-Group", "a"),
                ("Impersonate-Group", "b"),
                ("Impersonate-Extra-example.org%2Fx%20y", "1"),
                ("Impersonate-Extra-example.org%2Fx%20y", "2"),
            ),
            id="another user",
        ),
    ],
)
async def test_headers(tmp_path, user, headers):
    found = credentials(tmp_path, user)
    credential = await found.current()
    assert credential.headers == headers
    assert not await found.refused(credential)


@pytest.mark.parametrize(
    ("user", "message"),
    [
        pytest.param({"auth-provider": {"name": "gcp"}}, "use the exec plugin", id="auth-provider"),
        pytest.param(
            {"token": SECRET, "password": SECRET}, "token and a password", id="two ways at once"
        ),
        pytest.param(
            {"token": f"{SECRET}\nX: y"}, "not allowed in a header", id="a header inside a token"
        ),
        pytest.param({"username": "a:b"}, "must not contain a colon", id="a colon in a name"),
        pytest.param({"as-groups": ["a"]}, "need a user in `as`", id="groups of nobody"),
        pytest.param({"tokenFile": "nowhere"}, "nowhere: No such file", id="no token file"),
        pytest.param({"tokenFile": "a\0b"}, "not a possible file name", id="no possible file"),
        pytest.param({"tokenFile": "."}, "Is a directory", id="a directory"),
        pytest.param({"client-certificate-data": "!!"}, "not valid base64", id="bad base64"),
        pytest.param({"client-certificate-data": "/w=="}, "expected text", id="binary"),
        pytest.param({"client-certificate-data": "eA=="}, "but no client-key", id="no key"),
        pytest.param(
            {"client-certificate-data": "eA==", "client-key-data": b64(SECRET)},
            "expected PEM",
            id="no PEM",
        ),
    ],
)
def test_mistakes_are_explained(tmp_path, user, message):
    with pytest.raises(ConfigError) as caught:
        credentials(tmp_path, user)
    assert f'{tmp_path}/config: user "u"' in str(caught.value)
    assert message in str(caught.value)
    assert SECRET not in str(caught.value)


async def test_nothing_secret_goes_over_plain_http(tmp_path):
    content = make_kubeconfig(
        cluster={"server": "http://localhost:8001/"}, user={"token": SECRET, "as": "jane"}
    )
    config = from_kubeconfig(write(tmp_path / "config", content))
    assert config.server == "http://localhost:8001"
    assert (await config.credentials.current()).headers == (("Impersonate-User", "jane"),)


async def test_a_token_file_is_read_again_after_a_minute(tmp_path):
    clock = Clock()
    token = write(tmp_path / "token", "one")
    found = credentials(tmp_path, {"tokenFile": "token"}, clock)
    token.write_text("two\n")
    clock.time += 59
    assert (await found.current()).headers == (("Authorization", "Bearer one"),)
    clock.time += 1
    assert (await found.current()).headers == (("Authorization", "Bearer two"),)


async def test_a_token_file_is_read_at_once_after_a_401(tmp_path):
    token = write(tmp_path / "token", "one")
    found = credentials(tmp_path, {"tokenFile": "token"})
    old = await found.current()
    assert not await found.refused(old)
    token.write_text("two")
    assert await found.refused(old)
    assert (await found.current()).headers == (("Authorization", "Bearer two"),)
    assert await found.refused(old)


@pytest.mark.parametrize("content", ["", "  \n"], ids=["empty", "blank"])
async def test_a_file_that_breaks_does_not_take_the_token_away(tmp_path, caplog, content):
    clock = Clock()
    token = write(tmp_path / "token", "one")
    found = credentials(tmp_path, {"tokenFile": "token"}, clock)
    token.write_text(content)
    clock.time += 60
    with caplog.at_level(logging.WARNING):
        assert (await found.current()).headers == (("Authorization", "Bearer one"),)
    assert "Could not renew credentials" in caplog.text


async def test_certificates_from_files_are_renewed_in_pairs(tmp_path):
    clock = Clock()
    alice, bob = pki.client("alice"), pki.client("bob")
    write(tmp_path / "crt", alice.certificate)
    write(tmp_path / "key", alice.key)
    found = credentials(tmp_path, {"client-certificate": "crt", "client-key": "key"}, clock)
    first = await found.current()
    write(tmp_path / "crt", bob.certificate)
    clock.time += 60
    assert await found.current() == first
    write(tmp_path / "key", bob.key)
    clock.time += 60
    renewed = (await found.current()).certificate
    assert renewed is not None
    assert renewed.key == bob.key


async def test_certificates_inside_the_kubeconfig(tmp_path):
    pair = pki.client()
    user = {"client-certificate-data": b64(pair.certificate), "client-key-data": b64(pair.key)}
    certificate = (await credentials(tmp_path, user).current()).certificate
    assert certificate is not None
    assert (certificate.chain, certificate.key) == (pair.certificate, pair.key)


def test_relative_paths_start_at_the_file_they_stand_in(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "dir" / "ca.crt", pki.authority().pem)
    content = make_kubeconfig(cluster={"certificate-authority": "ca.crt"})
    write(tmp_path / "dir" / "config", content)
    assert (from_kubeconfig("dir/config").tls.ca or "").strip() == pki.authority().pem.strip()


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        pytest.param({"certificate-authority": "nowhere"}, "No such file", id="no CA file"),
        pytest.param({"certificate-authority-data": "eA=="}, "PEM certificates", id="no CA"),
        pytest.param(
            {
                "certificate-authority-data": b64(pki.authority().pem),
                "insecure-skip-tls-verify": True,
            },
            "remove one",
            id="an authority and no verification",
        ),
        pytest.param({"proxy-url": "socks5://p:1"}, "SOCKS", id="a SOCKS proxy"),
        pytest.param({"proxy-url": "ftp://p"}, "expected http://", id="no HTTP proxy"),
    ],
)
def test_mistakes_of_clusters_are_explained(tmp_path, cluster, message):
    path = write(tmp_path / "config", make_kubeconfig(cluster=cluster))
    with pytest.raises(ConfigError, match=f'cluster "c".*{message}'):
        from_kubeconfig(path)


async def test_a_config_prints_no_secrets(tmp_path):
    content = make_kubeconfig(
        cluster={"proxy-url": f"http://me:{SECRET}@proxy"}, user={"token": SECRET}
    )
    config = from_kubeconfig(write(tmp_path / "config", content))
    assert config.proxy == f"http://me:{SECRET}@proxy"
    assert SECRET not in repr(config) + repr(await config.credentials.current())
