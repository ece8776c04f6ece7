"""What every `Client` promises, as tests. Each implementation runs all of them.

A test class derives from `ClientContract` and has these fixtures:

* `client`: the implementation,
* `namespace`: a fresh namespace,
* `widgets`: a kind with the subresources status and scale (over `.spec.replicas`),
* `talker`: makes a running pod in a namespace that has printed some bytes; its name.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import pytest

from mpi_operator.kube import errors
from mpi_operator.kube.client import (
    Client,
    DeleteOptions,
    EventType,
    LogOptions,
    Propagation,
    Selector,
    WatchEvent,
    WatchOptions,
)
from mpi_operator.kube.objects import is_newer
from mpi_operator.kube.resources import CONFIG_MAPS, PODS, Manifest, Resource
from tests.support.waiting import until

Talker = Callable[[str, bytes], Awaitable[str]]

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
MINE = "mine=yes"  # clusters put ConfigMaps of their own into new namespaces


def config_map(
    name: str, namespace: str, *, labels: dict[str, str] | None = None, **metadata: Any
) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"mine": "yes"} | (labels or {}),
            **metadata,
        },
        "data": {"colour": "red"},
    }


def widget(resource: Resource, name: str, namespace: str) -> Manifest:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 1},
    }


def version(manifest: Manifest) -> str:
    text: str = manifest["metadata"]["resourceVersion"]
    return text


def names(manifests: list[Manifest]) -> list[str]:
    return sorted(manifest["metadata"]["name"] for manifest in manifests)


async def take(events: AsyncGenerator[WatchEvent, None], count: int) -> list[tuple[str, str]]:
    """The first events that are no bookmarks, as (type, name)."""
    taken: list[tuple[str, str]] = []
    async with asyncio.timeout(20), aclosing(events):
        async for event in events:
            if event.type is not EventType.BOOKMARK:
                taken.append((event.type, event.object["metadata"]["name"]))
            if len(taken) == count:
                break
    return taken


class ClientContract:
    """Creating, reading, changing, deleting, listing and watching objects."""

    # --- create and get

    async def test_what_is_created_can_be_read(self, client: Client, namespace: str):
        created = await client.create(CONFIG_MAPS, config_map("a", namespace))
        assert created == await client.get(CONFIG_MAPS, "a", namespace)
        assert created["data"] == {"colour": "red"}

    async def test_a_created_object_has_a_uid_a_version_and_a_time(
        self, client: Client, namespace: str
    ):
        one = (await client.create(CONFIG_MAPS, config_map("a", namespace)))["metadata"]
        other = (await client.create(CONFIG_MAPS, config_map("b", namespace)))["metadata"]
        assert one["uid"] != other["uid"]
        assert is_newer(other["resourceVersion"], one["resourceVersion"])
        assert one["creationTimestamp"].endswith("Z")

    async def test_a_taken_name_already_exists(self, client: Client, namespace: str):
        await client.create(CONFIG_MAPS, config_map("a", namespace))
        with pytest.raises(errors.AlreadyExists, match='"a" already exists'):
            await client.create(CONFIG_MAPS, config_map("a", namespace))

    async def test_the_server_makes_up_a_name_from_its_beginning(
        self, client: Client, namespace: str
    ):
        manifest = {"metadata": {"generateName": "made-up-", "namespace": namespace}}
        first = await client.create(CONFIG_MAPS, manifest)
        second = await client.create(CONFIG_MAPS, manifest)
        assert first["metadata"]["name"].startswith("made-up-")
        assert first["metadata"]["name"] != second["metadata"]["name"]

    async def test_a_missing_object_is_not_found(self, client: Client, namespace: str):
        with pytest.raises(errors.NotFound, match='"nobody" not found'):
            await client.get(CONFIG_MAPS, "nobody", namespace)

    @pytest.mark.parametrize("name", ["", ".", ".."])
    async def test_a_name_that_would_be_another_path_is_refused(
        self, client: Client, namespace: str, name: str
    ):
        with pytest.raises(ValueError, match="cannot be the name"):
            await client.get(CONFIG_MAPS, name, namespace)

    async def test_an_object_without_its_namespace_is_refused(self, client: Client):
        with pytest.raises(ValueError, match=r"metadata\.namespace is missing"):
            await client.create(CONFIG_MAPS, {"metadata": {"name": "a"}})

    async def test_what_the_caller_gave_is_not_changed(self, client: Client, namespace: str):
        manifest = config_map("a", namespace)
        await client.create(CONFIG_MAPS, manifest)
        assert manifest == config_map("a", namespace)

    # --- replace

    async def test_replacing_stores_the_object_as_given(self, client: Client, namespace: str):
        created = await client.create(CONFIG_MAPS, config_map("a", namespace))
        replaced = await client.replace(CONFIG_MAPS, created | {"data": {"size": "big"}})
        assert replaced["data"] == {"size": "big"}
        assert is_newer(version(replaced), version(created))

    async def test_replacing_an_old_version_is_a_conflict(self, client: Client, namespace: str):
        created = await client.create(CONFIG_MAPS, config_map("a", namespace))
        await client.replace(CONFIG_MAPS, created | {"data": {"size": "big"}})
        with pytest.raises(errors.Conflict):
            await client.replace(CONFIG_MAPS, created | {"data": {"size": "small"}})

    async def test_replacing_without_a_version_overwrites(self, client: Client, namespace: str):
        await client.create(CONFIG_MAPS, config_map("a", namespace))
        replaced = await client.replace(
            CONFIG_MAPS, config_map("a", namespace) | {"data": {"size": "big"}}
        )
        assert replaced["data"] == {"size": "big"}

    async def test_replacing_with_the_same_changes_nothing(self, client: Client, namespace: str):
        created = await client.create(CONFIG_MAPS, config_map("a", namespace))
        assert version(await client.replace(CONFIG_MAPS, created)) == version(created)

    async def test_replacing_a_missing_object_is_not_found(
        self, client: Client, widgets: Resource, namespace: str
    ):
        with pytest.raises(errors.NotFound):
            await client.replace(widgets, widget(widgets, "nobody", namespace))

    # --- patch

    async def test_a_merge_patch_sets_and_unsets_fields(self, client: Client, namespace: str):
        await client.create(CONFIG_MAPS, config_map("a", namespace))
        patched = await client.patch(
            CONFIG_MAPS, "a", {"data": {"colour": None, "size": "big"}}, namespace
        )
        assert patched["data"] == {"size": "big"}

    async def test_a_merge_patch_of_an_old_version_is_a_conflict(
        self, client: Client, namespace: str
    ):
        created = await client.create(CONFIG_MAPS, config_map("a", namespace))
        await client.patch(CONFIG_MAPS, "a", {"data": {"size": "big"}}, namespace)
        stale = {"metadata": {"resourceVersion": version(created)}, "data": {"size": "small"}}
        with pytest.raises(errors.Conflict):
            await client.patch(CONFIG_MAPS, "a", stale, namespace)

    async def test_a_patch_that_changes_nothing_is_no_new_version(
        self, client: Client, namespace: str
    ):
        created = await client.create(CONFIG_MAPS, config_map("a", namespace))
        patched = await client.patch(CONFIG_MAPS, "a", {"data": {"colour": "red"}}, namespace)
        assert version(patched) == version(created)

    # --- status, scale and generation

    async def test_the_status_is_written_apart_from_the_rest(
        self, client: Client, widgets: Resource, namespace: str
    ):
        created = await client.create(widgets, widget(widgets, "w", namespace))
        change = {"status": {"replicas": 3}, "spec": {"replicas": 7}}
        await client.patch(widgets, "w", change, namespace, subresource="status")
        stored = await client.get(widgets, "w", namespace)
        assert (stored["spec"], stored["status"]) == (created["spec"], {"replicas": 3})

    async def test_the_rest_is_written_apart_from_the_status(
        self, client: Client, widgets: Resource, namespace: str
    ):
        await client.create(widgets, widget(widgets, "w", namespace) | {"status": {"replicas": 9}})
        await client.patch(widgets, "w", {"status": {"replicas": 9}}, namespace)
        assert "status" not in await client.get(widgets, "w", namespace)

    async def test_replacing_a_status_of_an_old_version_is_a_conflict(
        self, client: Client, widgets: Resource, namespace: str
    ):
        created = await client.create(widgets, widget(widgets, "w", namespace))
        await client.patch(widgets, "w", {"spec": {"replicas": 2}}, namespace)
        with pytest.raises(errors.Conflict):
            await client.replace(
                widgets, created | {"status": {"replicas": 1}}, subresource="status"
            )

    async def test_the_generation_counts_changes_of_the_spec_only(
        self, client: Client, widgets: Resource, namespace: str
    ):
        created = await client.create(widgets, widget(widgets, "w", namespace))
        status = {"status": {"replicas": 1}}
        with_status = await client.patch(widgets, "w", status, namespace, subresource="status")
        scaled = await client.patch(widgets, "w", {"spec": {"replicas": 2}}, namespace)
        generations = [each["metadata"]["generation"] for each in (created, with_status, scaled)]
        assert generations == [1, 1, 2]

    async def test_the_scale_shows_and_sets_the_replicas(
        self, client: Client, widgets: Resource, namespace: str
    ):
        await client.create(widgets, widget(widgets, "w", namespace))
        scale = await client.get(widgets, "w", namespace, subresource="scale")
        assert (scale["kind"], scale["spec"]["replicas"]) == ("Scale", 1)
        await client.patch(widgets, "w", {"spec": {"replicas": 5}}, namespace, subresource="scale")
        assert (await client.get(widgets, "w", namespace))["spec"]["replicas"] == 5

    # --- delete

    async def test_what_is_deleted_is_gone(self, client: Client, namespace: str):
        await client.create(CONFIG_MAPS, config_map("a", namespace))
        await client.delete(CONFIG_MAPS, "a", namespace)
        with pytest.raises(errors.NotFound):
            await client.get(CONFIG_MAPS, "a", namespace)

    async def test_deleting_a_missing_object_is_not_found(self, client: Client, namespace: str):
        with pytest.raises(errors.NotFound):
            await client.delete(CONFIG_MAPS, "nobody", namespace)

    async def test_only_the_object_with_the_uid_is_deleted(self, client: Client, namespace: str):
        created = await client.create(CONFIG_MAPS, config_map("a", namespace))
        with pytest.raises(errors.Conflict):
            await client.delete(CONFIG_MAPS, "a", namespace, DeleteOptions(uid="somebody-else"))
        await client.delete(
            CONFIG_MAPS, "a", namespace, DeleteOptions(uid=created["metadata"]["uid"])
        )

    async def test_only_the_version_that_was_meant_is_deleted(self, client: Client, namespace: str):
        created = await client.create(CONFIG_MAPS, config_map("a", namespace))
        changed = await client.patch(CONFIG_MAPS, "a", {"data": {"size": "big"}}, namespace)
        with pytest.raises(errors.Conflict):
            await client.delete(
                CONFIG_MAPS, "a", namespace, DeleteOptions(resource_version=version(created))
            )
        await client.delete(
            CONFIG_MAPS, "a", namespace, DeleteOptions(resource_version=version(changed))
        )

    async def test_a_finalizer_keeps_a_deleted_object_until_it_is_removed(
        self, client: Client, namespace: str
    ):
        await client.create(
            CONFIG_MAPS, config_map("a", namespace, finalizers=["example.com/keep"])
        )
        await client.delete(CONFIG_MAPS, "a", namespace)
        kept = await client.get(CONFIG_MAPS, "a", namespace)
        assert kept["metadata"]["deletionTimestamp"]
        await client.patch(CONFIG_MAPS, "a", {"metadata": {"finalizers": None}}, namespace)
        with pytest.raises(errors.NotFound):
            await client.get(CONFIG_MAPS, "a", namespace)

    async def test_a_collection_is_deleted_by_label(self, client: Client, namespace: str):
        await client.create(CONFIG_MAPS, config_map("a", namespace, labels={"team": "red"}))
        await client.create(CONFIG_MAPS, config_map("b", namespace, labels={"team": "blue"}))
        await client.delete_collection(CONFIG_MAPS, namespace, Selector(labels="team=red"))
        left = await client.list(CONFIG_MAPS, namespace, Selector(labels="team"))
        assert names(left.items) == ["b"]

    async def test_what_a_deleted_object_owns_goes_with_it(self, client: Client, namespace: str):
        owner = await client.create(CONFIG_MAPS, config_map("owner", namespace))
        await client.create(CONFIG_MAPS, self.owned_by(owner, "child", namespace))
        await client.delete(
            CONFIG_MAPS, "owner", namespace, DeleteOptions(uid=owner["metadata"]["uid"])
        )
        await until(lambda: self.is_gone(client, "child", namespace))

    async def test_an_orphaned_object_stays(self, client: Client, namespace: str):
        owner = await client.create(CONFIG_MAPS, config_map("owner", namespace))
        await client.create(CONFIG_MAPS, self.owned_by(owner, "child", namespace))
        await client.delete(
            CONFIG_MAPS, "owner", namespace, DeleteOptions(propagation=Propagation.ORPHAN)
        )
        await until(lambda: self.is_gone(client, "owner", namespace))
        child = await client.get(CONFIG_MAPS, "child", namespace)
        assert "ownerReferences" not in child["metadata"]

    async def test_an_object_goes_with_the_owner_that_it_has_now(
        self, client: Client, namespace: str
    ):
        old = await client.create(CONFIG_MAPS, config_map("old", namespace))
        new = await client.create(CONFIG_MAPS, config_map("new", namespace))
        await client.create(CONFIG_MAPS, self.owned_by(old, "witness", namespace))
        await client.create(CONFIG_MAPS, self.owned_by(old, "child", namespace))
        owners = self.owned_by(new, "child", namespace)["metadata"]["ownerReferences"]
        change = {"metadata": {"ownerReferences": owners}}
        await client.patch(CONFIG_MAPS, "child", change, namespace)
        await client.delete(CONFIG_MAPS, "old", namespace)
        await until(lambda: self.is_gone(client, "witness", namespace))
        child = await client.get(CONFIG_MAPS, "child", namespace)
        assert child["metadata"]["ownerReferences"] == owners
        await client.delete(CONFIG_MAPS, "new", namespace)
        await until(lambda: self.is_gone(client, "child", namespace))

    @staticmethod
    def owned_by(owner: Manifest, name: str, namespace: str) -> Manifest:
        reference = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
        }
        return config_map(name, namespace, ownerReferences=[reference])

    @staticmethod
    async def is_gone(client: Client, name: str, namespace: str) -> bool:
        try:
            await client.get(CONFIG_MAPS, name, namespace)
        except errors.NotFound:
            return True
        return False

    async def test_without_a_grace_period_a_running_pod_is_gone_at_once(
        self, client: Client, namespace: str, talker: Talker
    ):
        name = await talker(namespace, b"")
        await client.delete(PODS, name, namespace, DeleteOptions(grace_period_seconds=0))
        with pytest.raises(errors.NotFound):
            await client.get(PODS, name, namespace)

    async def test_a_deleted_pod_has_its_grace_period(
        self, client: Client, namespace: str, talker: Talker
    ):
        name = await talker(namespace, b"")
        await client.delete(PODS, name, namespace, DeleteOptions(grace_period_seconds=60))
        going = await client.get(PODS, name, namespace)
        assert going["metadata"]["deletionGracePeriodSeconds"] == 60

    # --- logs

    @pytest.mark.parametrize(
        ("printed", "lines"),
        [
            pytest.param(b"one\ntwo\n", [b"one", b"two"], id="lines"),
            pytest.param(b"one\n\ntwo", [b"one", b"", b"two"], id="an empty line, no end"),
            pytest.param(b"", [], id="nothing"),
        ],
    )
    async def test_a_log_comes_in_lines(
        self, client: Client, namespace: str, talker: Talker, printed: bytes, lines: list[bytes]
    ):
        name = await talker(namespace, printed)
        assert [line async for line in client.log(name, namespace)] == lines

    @pytest.mark.parametrize(
        ("limit", "lines"),
        [
            pytest.param(3, [b"one"], id="a line"),
            pytest.param(4, [b"one"], id="with its end"),
            pytest.param(5, [b"one", b"t"], id="and a part of the next"),
            pytest.param(100, [b"one", b"two"], id="more than there is"),
        ],
    )
    async def test_a_log_can_be_limited(
        self, client: Client, namespace: str, talker: Talker, limit: int, lines: list[bytes]
    ):
        name = await talker(namespace, b"one\ntwo\n")
        log = client.log(name, namespace, LogOptions(limit_bytes=limit))
        assert [line async for line in log] == lines

    async def test_the_log_of_a_missing_pod_is_not_found(self, client: Client, namespace: str):
        with pytest.raises(errors.NotFound):
            await anext(client.log("nobody", namespace))

    # --- list

    @pytest.mark.parametrize(
        ("selector", "chosen"),
        [
            pytest.param("team=red", ["a"], id="equal"),
            pytest.param("team!=red,team", ["b"], id="not equal, but there"),
            pytest.param("team in (red, blue)", ["a", "b"], id="one of"),
            pytest.param("team notin (red),!kind", ["b"], id="none of, and not there"),
        ],
    )
    async def test_labels_choose_what_is_listed(
        self, client: Client, namespace: str, selector: str, chosen: list[str]
    ):
        await client.create(CONFIG_MAPS, config_map("a", namespace, labels={"team": "red"}))
        await client.create(CONFIG_MAPS, config_map("b", namespace, labels={"team": "blue"}))
        await client.create(CONFIG_MAPS, config_map("c", namespace, labels={"kind": "none"}))
        listed = await client.list(CONFIG_MAPS, namespace, Selector(labels=f"{MINE},{selector}"))
        assert names(listed.items) == chosen

    async def test_a_field_selector_chooses_one_by_name(self, client: Client, namespace: str):
        await client.create(CONFIG_MAPS, config_map("a", namespace))
        await client.create(CONFIG_MAPS, config_map("b", namespace))
        listed = await client.list(CONFIG_MAPS, namespace, Selector(fields="metadata.name=b"))
        assert names(listed.items) == ["b"]

    async def test_a_list_over_all_namespaces_has_those_of_each(
        self, client: Client, namespace: str
    ):
        await client.create(CONFIG_MAPS, config_map("a", namespace, labels={"in": namespace}))
        listed = await client.list(CONFIG_MAPS, selector=Selector(labels=f"in={namespace}"))
        assert names(listed.items) == ["a"]

    async def test_pages_are_one_moment_even_when_it_passes(self, client: Client, namespace: str):
        labels = {"paged": "yes"}
        for number in range(7):
            await client.create(CONFIG_MAPS, config_map(f"p{number}", namespace, labels=labels))
        pages = client.pages(CONFIG_MAPS, namespace, Selector(labels="paged=yes"), limit=3)
        sizes, versions = [], set()
        async with aclosing(pages):
            async for page in pages:
                sizes.append(len(page.items))
                versions.add(page.resource_version)
                with_latecomer = config_map(f"late{len(sizes)}", namespace, labels=labels)
                await client.create(CONFIG_MAPS, with_latecomer)
        assert (sizes, len(versions)) == ([3, 3, 1], 1)

    async def test_nothing_is_an_empty_list_with_a_version(self, client: Client, namespace: str):
        listed = await client.list(CONFIG_MAPS, namespace, Selector(labels="no=body"))
        assert (listed.items, listed.resource_version.isdecimal()) == ([], True)

    # --- watch

    async def test_a_watch_reports_what_happens_after_a_version(
        self, client: Client, namespace: str
    ):
        start = await client.list(CONFIG_MAPS, namespace)
        await client.create(CONFIG_MAPS, config_map("a", namespace))
        await client.patch(CONFIG_MAPS, "a", {"data": {"size": "big"}}, namespace)
        await client.delete(CONFIG_MAPS, "a", namespace)
        events = client.watch(
            CONFIG_MAPS,
            namespace,
            WatchOptions(resource_version=start.resource_version, labels=MINE),
        )
        assert await take(events, 3) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]

    async def test_a_watch_continues_with_what_happens_while_it_runs(
        self, client: Client, namespace: str
    ):
        start = await client.list(CONFIG_MAPS, namespace)
        events = client.watch(
            CONFIG_MAPS,
            namespace,
            WatchOptions(resource_version=start.resource_version, labels=MINE),
        )
        taking = asyncio.create_task(take(events, 2))
        await client.create(CONFIG_MAPS, config_map("a", namespace))
        await client.create(CONFIG_MAPS, config_map("b", namespace))
        assert await taking == [("ADDED", "a"), ("ADDED", "b")]

    async def test_a_watch_of_a_deleted_object_shows_its_last_state_and_a_newer_version(
        self, client: Client, namespace: str
    ):
        created = await client.create(CONFIG_MAPS, config_map("a", namespace))
        events = client.watch(
            CONFIG_MAPS, namespace, WatchOptions(resource_version=version(created), labels=MINE)
        )
        await client.delete(CONFIG_MAPS, "a", namespace)
        async with asyncio.timeout(20), aclosing(events):
            event = await anext(events)
        assert event.type is EventType.DELETED
        assert event.object["data"] == created["data"]
        assert is_newer(version(event.object), version(created))

    async def test_an_object_that_leaves_the_selection_is_deleted_and_one_that_enters_added(
        self, client: Client, namespace: str
    ):
        created = await client.create(CONFIG_MAPS, config_map("a", namespace, labels={"on": "yes"}))
        for label in ("no", "yes"):
            await client.patch(CONFIG_MAPS, "a", {"metadata": {"labels": {"on": label}}}, namespace)
        events = client.watch(
            CONFIG_MAPS, namespace, WatchOptions(resource_version=version(created), labels="on=yes")
        )
        assert await take(events, 2) == [("DELETED", "a"), ("ADDED", "a")]

    async def test_initial_events_are_what_there_is_and_a_bookmark_ends_them(
        self, client: Client, namespace: str
    ):
        for name in ("a", "b"):
            await client.create(CONFIG_MAPS, config_map(name, namespace, labels={"x": "y"}))
        events = client.watch(
            CONFIG_MAPS, namespace, WatchOptions(labels="x=y", initial_events=True)
        )
        seen: list[tuple[str, Manifest]] = []
        async with asyncio.timeout(20), aclosing(events):
            async for event in events:
                seen.append((event.type, event.object["metadata"]))
                if event.type is EventType.BOOKMARK:
                    break
        assert sorted((kind, data.get("name")) for kind, data in seen[:2]) == [
            ("ADDED", "a"),
            ("ADDED", "b"),
        ]
        kind, bookmark = seen[2]
        assert (kind, bookmark["annotations"][INITIAL_EVENTS_END]) == ("BOOKMARK", "true")
        assert all(
            not is_newer(data["resourceVersion"], bookmark["resourceVersion"]) for _, data in seen
        )

    async def test_a_watch_ends_by_itself_after_its_time(self, client: Client, namespace: str):
        start = await client.list(CONFIG_MAPS, namespace)
        async with asyncio.timeout(20):
            events = client.watch(
                CONFIG_MAPS,
                namespace,
                WatchOptions(resource_version=start.resource_version, labels=MINE, timeout=1),
            )
            kinds = {event.type async for event in events}
        assert kinds <= {EventType.BOOKMARK}

    async def test_two_watches_see_the_same(self, client: Client, namespace: str):
        start = await client.list(CONFIG_MAPS, namespace)

        async def watched() -> list[tuple[str, str]]:
            events = client.watch(
                CONFIG_MAPS,
                namespace,
                WatchOptions(resource_version=start.resource_version, labels=MINE),
            )
            return await take(events, 3)

        watches = asyncio.gather(watched(), watched())
        for name in ("a", "b", "c"):
            await client.create(CONFIG_MAPS, config_map(name, namespace))
        one, other = await watches
        assert one == other
