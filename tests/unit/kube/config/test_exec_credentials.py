"""Credential plugins, run for real."""

import asyncio
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mpi_operator.kube.config import Config, ConfigError, from_kubeconfig
from mpi_operator.kube.config.exec_credentials import ExecCredentials
from mpi_operator.kube.config.exec_plugin import ExecPlugin, parse_answer
from tests.unit.kube.config import pki
from tests.unit.kube.config.factories import (
    V1,
    V1BETA1,
    Clock,
    answer,
    b64,
    make_kubeconfig,
    runs,
    write,
    write_plugin,
)

SECRET = "s3cr3t-t0k3n"


def plugin(path: Path | str, **changes: Any) -> ExecPlugin:
    return ExecPlugin(where="here", api_version=V1, command=str(path), **changes)


def load_exec(tmp_path: Path, exec_: Any, cluster: Any = None) -> Config:
    content = make_kubeconfig(user={"exec": exec_}, cluster=cluster)
    return from_kubeconfig(write(tmp_path / "config", content))


def in_seconds(clock: Clock, seconds: float) -> str:
    return datetime.fromtimestamp(clock() + seconds, UTC).isoformat()


@pytest.mark.parametrize("version", [V1, V1BETA1])
async def test_a_plugin_gives_a_token(tmp_path, version):
    write_plugin(tmp_path / "plugin", answer(version, token="t"))
    exec_ = {"apiVersion": version, "command": "./plugin", "interactiveMode": "Never"}
    credential = await load_exec(tmp_path, exec_).credentials.current()
    assert credential.headers == (("Authorization", "Bearer t"),)


async def test_a_plugin_gives_a_certificate(tmp_path):
    pair = pki.client()
    status = {"clientCertificateData": pair.certificate, "clientKeyData": pair.key}
    path = write_plugin(tmp_path / "plugin", answer(**status))
    certificate = (await ExecCredentials(plugin(path)).current()).certificate
    assert certificate is not None
    assert certificate.key == pair.key


async def test_a_plugin_gets_its_environment_and_the_cluster(tmp_path, monkeypatch):
    monkeypatch.setenv("FROM_PARENT", "yes")
    told = "json.dump([sys.argv[1:], dict(os.environ)], open('told', 'w'))"
    write_plugin(tmp_path / "plugin", f"os.chdir({str(tmp_path)!r}); {told}; {answer(token='t')}")
    exec_ = {
        "apiVersion": V1,
        "command": "./plugin",
        "args": ["a", "b c"],
        "env": [{"name": "X", "value": "y"}],
        "interactiveMode": "Never",
        "provideClusterInfo": True,
    }
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "me"}}
    cluster = {
        "certificate-authority-data": b64(pki.authority().pem),
        "tls-server-name": "name",
        "extensions": [extension],
    }
    await load_exec(tmp_path, exec_, cluster).credentials.current()
    args, environment = json.loads((tmp_path / "told").read_text())
    info = json.loads(environment["KUBERNETES_EXEC_INFO"])
    assert args == ["a", "b c"]
    assert (environment["X"], environment["FROM_PARENT"]) == ("y", "yes")
    assert (info["apiVersion"], info["kind"]) == (V1, "ExecCredential")
    assert info["spec"]["interactive"] is False
    told_ca = info["spec"]["cluster"].pop("certificate-authority-data")
    assert told_ca == b64(pki.authority().pem.strip())
    assert info["spec"]["cluster"] == {
        "server": "https://c:6443",
        "tls-server-name": "name",
        "config": {"audience": "me"},
    }


@pytest.mark.parametrize(
    ("exec_", "message"),
    [
        pytest.param({"command": ""}, "command is missing", id="no command"),
        pytest.param(
            {"apiVersion": "client.authentication.k8s.io/v1alpha1"}, "is not supported", id="alpha"
        ),
        pytest.param({"interactiveMode": None}, "interactiveMode is missing", id="no mode in v1"),
        pytest.param({"interactiveMode": "Sometimes"}, "interactiveMode", id="no such mode"),
        pytest.param({"interactiveMode": "Always"}, "needs a terminal", id="no terminal"),
        pytest.param(
            {"env": [{"name": "A=B"}]}, "expected the name of a variable", id="a bad name"
        ),
    ],
)
def test_mistakes_are_found_before_the_first_run(tmp_path, exec_, message):
    valid = {"apiVersion": V1, "command": "x", "interactiveMode": "Never"}
    with pytest.raises(ConfigError, match=message):
        load_exec(tmp_path, valid | exec_)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(
            f"print({SECRET!r}); sys.exit('login expired')",
            "exit code 1: login expired",
            id="it fails",
        ),
        pytest.param(
            "sys.stderr.write('\\x1b[1mbold'); sys.exit(3)",
            "exit code 3: \ufffd\\[1mbold",
            id="it fails in colour",
        ),
        pytest.param("sys.exit(1)", "it gave no reason", id="it fails and is silent"),
        pytest.param(f"print({SECRET!r})", "not an ExecCredential", id="no JSON"),
        pytest.param("", "not an ExecCredential", id="nothing"),
        pytest.param(answer(V1BETA1, token=SECRET), "expected an ExecCredential of", id="version"),
        pytest.param(answer(), "neither a token nor a certificate", id="an empty status"),
        pytest.param(answer(token=5), "`\\$.status.token`", id="a token of the wrong type"),
        pytest.param(
            answer(token=f"{SECRET}\r\nX: y"), "not allowed in a header", id="a header in it"
        ),
        pytest.param(answer(clientCertificateData="x"), "expected both", id="no key"),
        pytest.param(
            answer(clientCertificateData="x", clientKeyData=SECRET), "expected PEM", id="no PEM"
        ),
        pytest.param(
            answer(token=SECRET, expirationTimestamp="soon"), "expirationTimestamp", id="no time"
        ),
    ],
)
async def test_bad_answers_are_explained(tmp_path, body, message):
    path = write_plugin(tmp_path / "plugin", body)
    with pytest.raises(ConfigError, match=message) as caught:
        await ExecCredentials(plugin(path)).current()
    assert str(caught.value).startswith("here: ")
    assert SECRET not in str(caught.value)


async def test_a_missing_plugin_says_how_to_get_it():
    missing = plugin("no-such-plugin", install_hint="Run: get-plugin")
    with pytest.raises(ConfigError, match=r"no-such-plugin not found.*\nRun: get-plugin"):
        await ExecCredentials(missing).current()


async def test_a_plugin_is_not_waited_for_without_end(tmp_path):
    path = write_plugin(tmp_path / "plugin", "import signal; signal.pause()")
    with pytest.raises(ConfigError, match=r"did not finish within 0.05s"):
        await ExecCredentials(plugin(path), timeout=0.05).current()


async def test_cancelling_takes_the_plugin_and_its_children_down(tmp_path):
    """The pipe reaches its end only when every process that could write to it is gone."""
    os.mkfifo(tmp_path / "alive")
    body = f"""
pipe = open({str(tmp_path / "alive")!r}, "w")
os.fork()
pipe.write("x"); pipe.flush()
import signal; signal.pause()"""
    path = write_plugin(tmp_path / "plugin", body)
    asking = asyncio.create_task(ExecCredentials(plugin(path)).current())
    pipe = await asyncio.to_thread((tmp_path / "alive").open)
    assert await asyncio.to_thread(pipe.read, 2) == "xx"
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert await asyncio.to_thread(pipe.read) == ""
    pipe.close()


async def test_a_helper_left_running_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "hold")
    body = f"""
if os.fork() == 0:
    open({str(tmp_path / "hold")!r}).read(); os._exit(0)
{answer(token="t")}"""
    path = write_plugin(tmp_path / "plugin", body)
    assert (await ExecCredentials(plugin(path)).current()).headers
    await asyncio.to_thread((tmp_path / "hold").write_text, "go")


async def test_many_requests_run_the_plugin_once(tmp_path):
    path = write_plugin(tmp_path / "plugin", answer(token="t"))
    found = ExecCredentials(plugin(path))
    credentials = await asyncio.gather(*(found.current() for _ in range(20)))
    assert len(set(credentials)) == 1
    assert runs(path) == 1


async def test_many_requests_share_one_failure(tmp_path):
    path = write_plugin(tmp_path / "plugin", "sys.exit('no')")
    found = ExecCredentials(plugin(path))
    results = await asyncio.gather(*(found.current() for _ in range(5)), return_exceptions=True)
    assert all(isinstance(result, ConfigError) for result in results)
    assert runs(path) == 1


@pytest.mark.parametrize(
    ("lifetime", "later", "expected"),
    [
        pytest.param(3600, 3539, 1, id="with more than a minute left, it is kept"),
        pytest.param(3600, 3540, 2, id="in the last minute, it is renewed"),
        pytest.param(100, 79, 1, id="a short one is kept for most of its life"),
        pytest.param(100, 80, 2, id="a short one is renewed in its last fifth"),
        pytest.param(-5, 0, 2, id="one that came expired is not kept"),
    ],
)
async def test_when_a_plugin_runs_again(tmp_path, lifetime, later, expected):
    clock = Clock()
    status = {"token": "t", "expirationTimestamp": in_seconds(clock, lifetime)}
    path = write_plugin(tmp_path / "plugin", answer(**status))
    found = ExecCredentials(plugin(path), now=clock)
    await found.current()
    clock.time += later
    await found.current()
    assert runs(path) == expected


async def test_without_an_expiry_it_is_kept(tmp_path):
    clock = Clock()
    path = write_plugin(tmp_path / "plugin", answer(token="t"))
    found = ExecCredentials(plugin(path), now=clock)
    await found.current()
    clock.time += 10**9
    await found.current()
    assert runs(path) == 1


async def test_a_failed_renewal_keeps_the_old_one_until_it_expires(tmp_path):
    clock = Clock()
    status = {"token": "t", "expirationTimestamp": in_seconds(clock, 3600)}
    path = write_plugin(tmp_path / "plugin", answer(**status))
    found = ExecCredentials(plugin(path), now=clock)
    first = await found.current()
    write_plugin(path, "sys.exit('no')")
    clock.time += 3550
    assert await found.current() == await found.current() == first
    assert runs(path) == 2
    clock.time += 50
    with pytest.raises(ConfigError, match="no"):
        await found.current()


async def test_a_401_runs_the_plugin_and_says_whether_that_helped(tmp_path):
    path = write_plugin(tmp_path / "plugin", answer(token="one"))
    found = ExecCredentials(plugin(path), (("Impersonate-User", "jane"),))
    old = await found.current()
    assert not await found.refused(old)
    write_plugin(path, answer(token="two"))
    assert all(await asyncio.gather(*(found.refused(old) for _ in range(5))))
    assert runs(path) == 3
    expected = (("Authorization", "Bearer two"), ("Impersonate-User", "jane"))
    assert (await found.current()).headers == expected
    assert await found.refused(old)
    assert runs(path) == 3


def test_plugins_and_answers_print_no_secrets():
    told = plugin("x", args=(SECRET,), environment={"A": SECRET})
    status = {"token": SECRET}
    text = json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status})
    assert SECRET not in repr(told) + repr(parse_answer(told, text.encode()))
