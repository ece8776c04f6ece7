"""The certificate of a replica: from a Secret that replicas share, or from files."""

import asyncio
import base64
import logging
import time
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry

from mpi_operator.kube.resources import SECRETS, Key
from mpi_operator.local.apiserver.cluster import LocalCluster
from mpi_operator.webhook import certificates
from mpi_operator.webhook.ca_bundle import BundleKeeper, targets
from mpi_operator.webhook.certificate_files import CertificateFiles
from mpi_operator.webhook.certificate_keeper import CertificateKeeper, Wanted
from mpi_operator.webhook.certificate_secret import read_state
from mpi_operator.webhook.loop_thread import LoopThread
from mpi_operator.webhook.metrics import WebhookMetrics
from mpi_operator.webhook.rotation import Times
from mpi_operator.webhook.server import Decisions, application, served
from mpi_operator.webhook.tls import LiveContext
from tests.support.faulty_client import FaultyClient, refused
from tests.support.tls_client import call
from tests.support.waiting import until

KEY = Key("home", "mpi-operator-webhook")
WANTED = Wanted(KEY, ("localhost",), Times(reread=0.01))


@pytest.fixture
def cluster():
    return LocalCluster()


def keeper(live=None, wanted=WANTED, **options):
    return CertificateKeeper(wanted, live or LiveContext(), WebhookMetrics(), **options)


async def stored(cluster):
    return read_state(await cluster.get(SECRETS, KEY.name, KEY.namespace))


async def test_all_replicas_serve_what_the_first_one_has_stored(cluster):
    first, second = keeper(), keeper()
    assert first.authorities == second.authorities == (), "nothing is shared yet"
    await asyncio.gather(first.refresh(cluster, None), second.refresh(cluster, None))
    assert first.authorities == second.authorities == (await stored(cluster)).authorities


async def test_others_are_notified_when_the_authorities_change(cluster):
    calls: list[str] = []
    replica = keeper()
    replica.on_change.append(lambda: calls.append("changed"))
    await replica.refresh(cluster, None)
    await replica.refresh(cluster, None)
    assert calls == ["changed"]


async def test_a_certificate_for_another_service_is_replaced_but_not_its_authority(cluster):
    await keeper().refresh(cluster, None)
    before = await stored(cluster)
    await keeper(wanted=replace(WANTED, names=("other.svc",))).refresh(cluster, None)
    after = await stored(cluster)
    assert after.current == before.current
    assert after.serving.names == ("other.svc",)


async def test_an_edited_secret_is_healed_and_keeps_what_is_not_ours(cluster):
    await keeper().refresh(cluster, None)
    before = await cluster.get(SECRETS, KEY.name, KEY.namespace)
    text = "# für alle\r\n" + base64.b64decode(before["data"]["tls.crt"]).decode().rstrip()
    edited = {"tls.crt": base64.b64encode(text.encode()).decode(), "keystore.p12": "/v8="}
    await cluster.replace(SECRETS, {**before, "data": before["data"] | edited})
    await keeper().refresh(cluster, None)
    after = await cluster.get(SECRETS, KEY.name, KEY.namespace)
    assert after["data"] == before["data"] | {"keystore.p12": "/v8="}


async def test_an_authority_takes_over_when_it_is_trusted(cluster):
    now = time.time()
    replica = keeper(clock=lambda: now)
    await replica.refresh(cluster, None)
    old = (await stored(cluster)).current
    now = old.expires_at - WANTED.times.succession
    await replica.refresh(cluster, replica.authorities)
    assert (await stored(cluster)).current == old
    await replica.refresh(cluster, replica.authorities)
    now += WANTED.times.trust_delay
    await replica.refresh(cluster, replica.authorities)
    after = await stored(cluster)
    assert after.current != old
    assert replica.authorities == (after.current.certificate, old.certificate)


async def test_a_secret_that_cannot_be_read_is_reported_once_and_retried(cluster, caplog):
    client = FaultyClient(cluster)
    client.refuse("get Secret", refused(403, "secrets is forbidden"))
    replica = keeper()
    running = asyncio.create_task(replica.run(client.as_client, lambda: None))
    await until(lambda: len(client.requests) > 3)
    assert replica.authorities == ()
    running.cancel()
    [record] = caplog.records
    assert record.error == "secrets is forbidden"
    assert "deploy/rbac/" in record.advice


@pytest.mark.parametrize("steps", range(30))
async def test_the_keeper_of_a_bundle_ends_whenever_it_is_cancelled(cluster, steps):
    async def refresh():
        """The Secret is up to date."""

    bundle = BundleKeeper(cluster, targets()[0], KEY, keeper(), refresh)
    running = asyncio.create_task(bundle.run())
    for _ in range(steps):
        await asyncio.sleep(0)
    running.cancel()
    done, _ = await asyncio.wait({running}, timeout=5)
    assert done


@pytest.fixture
async def files(tmp_path):
    """Files, a server that uses them, and its port."""
    live, registry = LiveContext(), CollectorRegistry()
    source = CertificateFiles(tmp_path, live, WebhookMetrics(registry))
    source.refresh()
    app = application(Decisions(None, None, None), WebhookMetrics())  # type: ignore[arg-type]
    async with served(app, live, 0, "127.0.0.1") as port:
        yield source, port, registry


def write(directory, authority, *names):
    pair = certificates.new_serving(authority, ["localhost"], time.time(), 100)
    texts = {"tls.crt": pair.certificate, "tls.key": pair.key}
    for name in names or texts:
        (directory / name).write_text(texts[name])


async def test_files_are_read_again_when_they_change(files, tmp_path, caplog):
    source, port, registry = files
    [missing] = caplog.get_records("setup")
    assert "FileNotFoundError" in missing.error
    for _ in range(2):
        authority = certificates.new_authority(time.time(), 1000)
        write(tmp_path, authority)
        source.refresh()
        assert (await call(port, "/healthz", authorities=[authority.certificate]))[0] == 200
    name = "mpi_operator_webhook_certificate_expiry_timestamp_seconds"
    assert registry.get_sample_value(name) == pytest.approx(time.time() + 100, abs=30)


async def test_files_that_are_half_replaced_wait_for_the_rest(files, tmp_path, caplog):
    source, port, _ = files
    authority = certificates.new_authority(time.time(), 1000)
    write(tmp_path, authority)
    source.refresh()
    caplog.clear()
    write(tmp_path, certificates.new_authority(time.time(), 1000), "tls.crt")
    source.refresh()
    source.refresh()
    assert (await call(port, "/healthz", authorities=[authority.certificate]))[0] == 200
    assert len(caplog.records) == 1


async def test_a_context_in_a_thread_of_its_own():
    diary: list[str] = []

    @asynccontextmanager
    async def context():
        diary.append("entered")
        try:
            yield 5
        finally:
            diary.append("left")

    thread = LoopThread(context, "test")
    assert await thread.start() == 5
    async with thread:
        assert diary == ["entered"]
    assert diary == ["entered", "left"]
    await thread.ended()


async def test_an_error_while_a_thread_starts_is_raised_here():
    @asynccontextmanager
    async def context():
        raise OSError("in use")
        yield

    thread = LoopThread(context, "test")
    with pytest.raises(OSError, match="in use"):
        await thread.start()


async def test_an_error_when_a_thread_ends_is_logged(caplog):
    @asynccontextmanager
    async def context():
        yield
        raise KeyError("late")

    thread = LoopThread(context, "test")
    await thread.start()
    with caplog.at_level(logging.WARNING):
        async with thread:
            pass
    assert [record.error for record in caplog.records] == ["KeyError('late')"]
    with pytest.raises(KeyError):
        await thread.ended()
