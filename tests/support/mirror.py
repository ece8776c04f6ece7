"""Everything of some kinds that a cluster has, as it changes, to wait without polling.

Asking every few milliseconds is fine for one job. For a hundred jobs at once it would keep the API
server busier than what is being tested.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager
from typing import TypeAlias

import msgspec

from mpi_operator.kube.client import EventType, WatchOptions
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import Key, Manifest, Resource

Objects: TypeAlias = dict[Key, Manifest]
_decode = msgspec.json.Decoder(Manifest).decode


class Mirror:
    """The objects of some kinds, and which uids every name has had."""

    def __init__(self, client: HttpClient, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._objects: dict[Resource, Objects] = defaultdict(dict)
        self._uids: dict[Resource, dict[Key, list[str]]] = defaultdict(lambda: defaultdict(list))
        self._changed: dict[str, asyncio.Event] = {}
        self.latest_version = 0  # of everything that was seen
        self.listeners: list[Callable[[Resource, Manifest], None]] = []  # to what is there

    def all(self, resource: Resource, namespace: str) -> list[Manifest]:
        """The objects of a kind in a namespace, by name."""
        found = self._objects[resource].items()
        return [each for key, each in sorted(found) if key.namespace == namespace]

    def get(self, resource: Resource, name: str, namespace: str) -> Manifest | None:
        return self._objects[resource].get(Key(namespace, name))

    def uids(self, resource: Resource, namespace: str) -> Iterator[tuple[str, str]]:
        """Name and uid of everything of a kind that there ever was in a namespace."""
        for key, uids in self._uids[resource].items():
            if key.namespace == namespace:
                yield from ((key.name, uid) for uid in uids)

    async def until(self, fact: Callable[[], bool], namespace: str, seconds: float = 60) -> None:
        """Return as soon as a fact about a namespace is true."""
        async with asyncio.timeout(seconds):
            while not fact():
                changed = self._changed.setdefault(namespace, asyncio.Event())
                await changed.wait()

    async def follow(self, resource: Resource, read: asyncio.Event) -> None:
        """Keep up with a kind; `read` is set when all there is at first is known."""
        version = ""
        while True:
            events = self._client.watch(
                resource,
                self._namespace,
                WatchOptions(resource_version=version, initial_events=not version),
            )
            async with aclosing(events):
                async for event in events:
                    manifest = _decode(event.raw)
                    version = manifest["metadata"]["resourceVersion"]
                    if event.type is EventType.BOOKMARK:
                        read.set()
                    else:
                        self._take(resource, manifest, event.type is EventType.DELETED)

    def _take(self, resource: Resource, manifest: Manifest, is_gone: bool) -> None:
        metadata = manifest["metadata"]
        key = Key(metadata.get("namespace", ""), metadata["name"])
        self.latest_version = max(self.latest_version, int(metadata["resourceVersion"]))
        if is_gone:
            self._objects[resource].pop(key, None)
        else:
            self._objects[resource][key] = manifest
            if metadata["uid"] not in self._uids[resource][key]:
                self._uids[resource][key].append(metadata["uid"])
            for listener in self.listeners:
                listener(resource, manifest)
        if changed := self._changed.pop(key.namespace, None):
            changed.set()


@asynccontextmanager
async def mirrored(
    client: HttpClient, *resources: Resource, namespace: str = ""
) -> AsyncIterator[Mirror]:
    """A mirror of these kinds, in one namespace or in all of them."""
    mirror = Mirror(client, namespace)
    async with asyncio.TaskGroup() as group:  # which ends the block where a mirror breaks
        reads = [asyncio.Event() for _ in resources]
        tasks = [
            group.create_task(mirror.follow(resource, read))
            for resource, read in zip(resources, reads, strict=True)
        ]
        await asyncio.gather(*(read.wait() for read in reads))
        yield mirror
        for task in tasks:
            task.cancel()
