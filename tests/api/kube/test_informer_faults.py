"""Informers when servers die, connections break, history is forgotten and collections are big.

Each test changes objects while the informer cannot reach the server. In the end its store equals
the server's, and its handlers saw a possible history: nothing missed, nothing new twice
(`ChangeRecorder` checks that).
"""

import asyncio
import functools
import gc
import random
import resource
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from devcluster.control_plane import ControlPlane
from mpi_operator.kube import config, errors
from mpi_operator.kube.client import EventType, WatchOptions
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.informer import Informer
from mpi_operator.kube.metrics import Metrics
from mpi_operator.kube.objects import Object
from mpi_operator.kube.resources import CONFIG_MAPS, NAMESPACES, Manifest
from tests.api.conftest import StartControlPlane
from tests.api.kube.conftest import IMPATIENT
from tests.contract.client import config_map, take
from tests.support.change_recorder import ChangeRecorder
from tests.support.relay import Relay, relay_to
from tests.support.waiting import until

NO_STREAMING = "--feature-gates=WatchList=false"


@asynccontextmanager
async def following(
    client: HttpClient, namespace: str
) -> AsyncIterator[tuple[Informer[Object], ChangeRecorder]]:
    """A running informer that has read everything once, and what it tells."""
    informer = Informer(client, CONFIG_MAPS, Object, namespace=namespace, metrics=Metrics())
    informer.on_change(recorder := ChangeRecorder())
    running = asyncio.create_task(informer.run())
    try:
        async with asyncio.timeout(30):
            await informer.synced()
        yield informer, recorder
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@asynccontextmanager
async def behind_a_relay(control_plane: ControlPlane) -> AsyncIterator[tuple[HttpClient, Relay]]:
    """A client whose cable can be pulled."""
    async with relay_to(control_plane.ports["kube-apiserver"]) as relay:
        settings = config.load(kubeconfig=control_plane.kubeconfig())
        settings = replace(settings, server=f"https://127.0.0.1:{relay.port}")
        async with HttpClient(settings, timeouts=IMPATIENT) as client:
            yield client, relay


async def caught_up(client: HttpClient, namespace: str, recorder: ChangeRecorder) -> None:
    """Wait until the recorder is what the server has."""
    listed = await client.list(CONFIG_MAPS, namespace)
    wanted = {
        each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in listed.items
    }
    await until(lambda: recorder.versions() == wanted, seconds=40)


async def change_things(client: HttpClient, namespace: str, names: list[str]) -> None:
    """Create, change or delete each of these, whatever it takes."""
    for name in names:
        try:
            if random.random() < 0.4:
                await client.delete(CONFIG_MAPS, name, namespace)
            else:
                change = {"data": {"dice": str(random.random())}}
                await client.patch(CONFIG_MAPS, name, change, namespace)
        except errors.NotFound:
            await create(client, namespace, name)
        except errors.ConnectionLost:
            continue


async def create(client: HttpClient, namespace: str, name: str) -> None:
    try:
        await client.create(CONFIG_MAPS, config_map(name, namespace))
    except (errors.AlreadyExists, errors.ConnectionLost):
        return


@pytest.fixture
async def place(fragile_client: HttpClient) -> str:
    """A namespace on the fragile control plane."""
    created = await fragile_client.create(NAMESPACES, {"metadata": {"generateName": "faults-"}})
    name: str = created["metadata"]["name"]
    return name


async def test_a_server_killed_in_mid_watch_loses_no_change(
    fragile: ControlPlane, fragile_client: HttpClient, place: str
):
    is_over = asyncio.Event()

    async def keep_changing() -> None:
        while not is_over.is_set():
            await change_things(fragile_client, place, [f"c{number}" for number in range(40)])

    async with following(fragile_client, place) as (_, recorder):
        changing = asyncio.create_task(keep_changing())
        for _ in range(2):
            enough = recorder.count + 30
            await until(functools.partial(recorder.has_recorded, enough))
            await asyncio.to_thread(fragile.kill_apiserver)
            await asyncio.to_thread(fragile.start_apiserver)
        is_over.set()
        await changing
        await caught_up(fragile_client, place, recorder)


async def test_a_cut_connection_is_resumed_without_reading_everything_again(
    fragile: ControlPlane, fragile_client: HttpClient, place: str
):
    await change_things(fragile_client, place, ["a", "b", "c"])
    async with (
        behind_a_relay(fragile) as (client, relay),
        following(client, place) as (informer, recorder),
    ):
        relay.cut()
        await change_things(fragile_client, place, ["a", "b", "c", "d"] * 3)
        relay.mend()
        await caught_up(fragile_client, place, recorder)
        assert relists(informer) == {"stream": 1}


async def test_a_forgotten_version_means_a_new_list_compared_with_what_is_known(
    fragile: ControlPlane,
):
    assert await relists_after_forgotten_history(fragile) == {"stream": 2}


async def test_a_server_that_cannot_stream_lists_is_read_in_pages(
    start_control_plane: StartControlPlane,
):
    control_plane = await asyncio.to_thread(start_control_plane, apiserver_args=[NO_STREAMING])
    assert await relists_after_forgotten_history(control_plane) == {"pages": 2}


async def relists_after_forgotten_history(control_plane: ControlPlane) -> dict[str, int]:
    """History is compacted while the informer is cut off: 410, and then nothing but a diff."""
    async with (
        HttpClient(config.load(kubeconfig=control_plane.kubeconfig())) as admin,
        behind_a_relay(control_plane) as (client, relay),
    ):
        for name in ("changed", "deleted", "kept"):
            await create(admin, "default", name)
        async with following(client, "default") as (informer, recorder):
            before = recorder.count
            relay.cut()
            await admin.delete(CONFIG_MAPS, "deleted", "default")
            await admin.patch(CONFIG_MAPS, "changed", {"data": {"size": "big"}}, "default")
            await create(admin, "default", "new")
            await forget_history(control_plane)
            relay.mend()
            await caught_up(admin, "default", recorder)
            assert recorder.count == before + 3
            return relists(informer)


async def test_a_stale_version_is_reported_as_gone(
    fragile: ControlPlane, fragile_client: HttpClient, place: str
):
    start = await fragile_client.list(CONFIG_MAPS, place)
    await create(fragile_client, place, "later")
    await forget_history(fragile)
    events = fragile_client.watch(
        CONFIG_MAPS, place, WatchOptions(resource_version=start.resource_version, timeout=10)
    )
    with pytest.raises(errors.Gone):
        await take(events, count=1000)


async def test_a_silent_connection_is_noticed_and_replaced(
    fragile: ControlPlane, fragile_client: HttpClient, place: str
):
    async with (
        behind_a_relay(fragile) as (client, relay),
        following(client, place) as (_, recorder),
    ):
        relay.silence()  # the connections that there are; new ones are fine
        await change_things(fragile_client, place, ["a", "b", "c"])
        await caught_up(fragile_client, place, recorder)


async def test_a_frozen_server_is_noticed_and_followed_again(
    fragile: ControlPlane, fragile_client: HttpClient, place: str
):
    async with following(fragile_client, place) as (informer, recorder):
        fragile.pause_apiserver()
        await until(lambda: informer.problem != "")
        fragile.resume_apiserver()
        await change_things(fragile_client, place, ["a", "b", "c"])
        await caught_up(fragile_client, place, recorder)


async def test_a_slow_consumer_costs_no_memory_and_misses_nothing(
    fragile_client: HttpClient, patient_client: HttpClient, place: str
):
    """Unread events stay with the server, which may end the watch: then it is resumed."""
    await create_big_ones(patient_client, place, "warm-up", 200)  # connections have buffers too
    start = await fragile_client.list(CONFIG_MAPS, place)
    events = fragile_client.watch(
        CONFIG_MAPS,
        place,
        WatchOptions(resource_version=start.resource_version, labels="batch=big"),
    )
    async with aclosing(events):
        await create_big_ones(patient_client, place, "big", 1)
        seen = [(await anext(events)).object["metadata"]]
        tracemalloc.start()
        await create_big_ones(patient_client, place, "big", 1000)
        await asyncio.sleep(0)  # until then asyncio itself holds the answers
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert held < 6 * 2**20, "20 MB of events were written and not read"
    rest = resumed(fragile_client, place, seen[0]["resourceVersion"], 1000)
    seen.extend([each async for each in rest])
    assert len({each["name"] for each in seen}) == 1001


async def test_ten_thousand_objects_are_read_again_and_again_in_the_same_memory(
    fragile_client: HttpClient, patient_client: HttpClient, place: str
):
    manifests = (config_map(f"n{number}", place) for number in range(10_000))
    await asyncio.gather(*(patient_client.create(CONFIG_MAPS, each) for each in manifests))
    async with following(fragile_client, place) as (informer, recorder):
        await caught_up(fragile_client, place, recorder)
        for streaming in (True, False):
            informer._can_stream = streaming
            recorded = recorder.count
            for _ in range(3):
                await informer.refresh()
            before = resident_bytes()
            for _ in range(7):
                await informer.refresh()
            assert (len(informer.store), recorder.count) == (len(recorder.objects), recorded)
            assert resident_bytes() - before < 10 * 2**20
        assert relists(informer) == {"stream": 11, "pages": 10}


def resident_bytes() -> int:
    """The memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


async def create_big_ones(client: HttpClient, namespace: str, batch: str, count: int) -> None:
    metadata = {
        "generateName": f"{batch}-",
        "namespace": namespace,
        "labels": {"batch": batch},
    }
    manifest = {"metadata": metadata, "data": {"text": "x" * 20_000}}
    await asyncio.gather(*(client.create(CONFIG_MAPS, manifest) for _ in range(count)))


async def resumed(
    client: HttpClient, namespace: str, version: str, count: int
) -> AsyncIterator[Manifest]:
    """The metadata of that many added objects, over as many watches as it takes."""
    while count:
        events = client.watch(
            CONFIG_MAPS,
            namespace,
            WatchOptions(resource_version=version, labels="batch=big", timeout=5),
        )
        async with aclosing(events):
            async for event in events:
                metadata = event.object["metadata"]
                version = metadata["resourceVersion"]
                if event.type is EventType.ADDED:
                    yield metadata
                    count -= 1
                if not count:
                    break


async def forget_history(control_plane: ControlPlane) -> None:
    """Compact etcd, and the API server's own memory with it."""
    await asyncio.to_thread(control_plane.compact)
    await asyncio.to_thread(control_plane.kill_apiserver)
    await asyncio.to_thread(control_plane.start_apiserver)


def relists(informer: Informer[Object]) -> dict[str, int]:
    """How often everything was read, by method."""
    return {
        sample.labels["method"]: int(sample.value)
        for family in informer._metrics.relists.collect()
        for sample in family.samples
        if sample.name.endswith("_total")
    }
