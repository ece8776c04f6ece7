"""What only the HTTP client can do, and what a real server says no to."""

import asyncio

import pytest
from aiohttp import web

from devcluster.control_plane import ControlPlane
from mpi_operator.kube import config, discovery, errors
from mpi_operator.kube.client import DeleteOptions, LogOptions
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import CONFIG_MAPS, PODS, SECRETS, Manifest, Resource
from tests.contract.client import config_map
from tests.support.kubelet import kubelet, pod
from tests.support.waiting import until
from tests.support.widgets import WIDGETS, install

QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")


# --- server-side apply


async def test_applying_creates_and_then_changes_only_what_is_mine(
    client: HttpClient, namespace: str
):
    mine = applied("a", namespace, colour="red")
    await client.apply(CONFIG_MAPS, mine, manager="me")
    await client.apply(CONFIG_MAPS, applied("a", namespace, size="big"), manager="you")
    stored = await client.apply(CONFIG_MAPS, applied("a", namespace, colour="blue"), manager="me")
    assert stored["data"] == {"colour": "blue", "size": "big"}


async def test_applying_a_field_of_another_manager_is_a_conflict_unless_forced(
    client: HttpClient, namespace: str
):
    await client.apply(CONFIG_MAPS, applied("a", namespace, colour="red"), manager="me")
    theirs = applied("a", namespace, colour="blue")
    with pytest.raises(errors.Conflict, match='conflict with "me"'):
        await client.apply(CONFIG_MAPS, theirs, manager="you")
    stored = await client.apply(CONFIG_MAPS, theirs, manager="you", force=True)
    assert stored["data"] == {"colour": "blue"}


def applied(name: str, namespace: str, **data: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": data,
    }


# --- what a server refuses


async def test_every_error_in_an_invalid_object_is_reported(client: HttpClient, namespace: str):
    broken = pod("Not A Name", namespace, restartPolicy="Sometimes")
    with pytest.raises(errors.Invalid) as refused:
        await client.create(PODS, broken)
    assert {cause.field for cause in refused.value.causes} >= {
        "metadata.name",
        "spec.restartPolicy",
    }


async def test_a_used_up_quota_is_distinguished_from_other_prohibitions(
    client: HttpClient, namespace: str
):
    quota = {"metadata": {"name": "none", "namespace": namespace}, "spec": {"hard": {"pods": "0"}}}
    await client.create(QUOTAS, quota)

    async def is_refused() -> bool:
        """Whether the quota is in force: it takes the server a moment."""
        try:
            await client.create(PODS, pod("too-many", namespace))
        except errors.QuotaExceeded:
            return True
        await client.delete(PODS, "too-many", namespace, DeleteOptions(grace_period_seconds=0))
        return False

    await until(is_refused)


async def test_what_rbac_does_not_allow_is_forbidden(control_plane: ControlPlane, namespace: str):
    nobody = config.load(kubeconfig=control_plane.kubeconfig("nobody"))
    async with HttpClient(nobody) as client:
        with pytest.raises(errors.Forbidden, match='User "nobody" cannot list resource "secrets"'):
            await client.list(SECRETS, namespace)


async def test_an_object_beyond_the_servers_limit_is_too_large(client: HttpClient, namespace: str):
    huge = config_map("huge", namespace) | {"data": {"text": "x" * 4 * 2**20}}
    with pytest.raises(errors.TooLarge):
        await client.create(CONFIG_MAPS, huge)


async def test_a_kind_that_the_server_does_not_serve_is_not_found(
    client: HttpClient, namespace: str
):
    with pytest.raises(errors.NotFound):
        await client.list(Resource("nobody.example.com", "v1", "ghosts", "Ghost"), namespace)


async def test_an_object_of_wrong_types_is_a_bad_request(client: HttpClient, namespace: str):
    with pytest.raises(errors.BadRequest, match="cannot unmarshal array"):
        await client.create(CONFIG_MAPS, config_map("a", namespace) | {"data": ["a", "list"]})


# --- discovery


async def test_the_server_reports_its_version_and_groups(client: HttpClient):
    assert (await discovery.server_version(client)).startswith("v1.")
    assert {"v1", "batch/v1", "coordination.k8s.io/v1"} <= set(await discovery.api_versions(client))


@pytest.mark.usefixtures("control_plane")  # not on the user's: a new kind would stay there
async def test_a_served_kind_is_described(client: HttpClient):
    await install(client)

    async def is_served() -> bool:
        return bool(await discovery.served(client, WIDGETS.api_version))

    await until(is_served)  # later than the kind itself
    (served,) = await discovery.served(client, WIDGETS.api_version)
    assert served.resource == WIDGETS
    assert served.storage_version_hash


async def test_a_version_has_the_kinds_that_the_server_serves(client: HttpClient):
    core = [each.resource for each in await discovery.served(client, "v1")]
    assert PODS in core
    assert not [each for each in core if "/" in each.plural]  # which would be a subresource
    assert await discovery.served(client, "nobody.example.com/v1") == []


# --- logs, from something that answers the API server as a kubelet does


async def test_logs_come_line_by_line_as_they_are_written(
    client: HttpClient, namespace: str, control_plane: ControlPlane
):
    go_on = asyncio.Event()

    async def logs(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"first\nsec")
        await go_on.wait()
        await response.write(b"ond\n\nlast")
        return response

    async with kubelet(client, control_plane, logs) as node:
        await client.create(PODS, pod("talker", namespace, nodeName=node))
        lines = client.log("talker", namespace, LogOptions(follow=True))
        assert await anext(lines) == b"first"
        go_on.set()
        assert [line async for line in lines] == [b"second", b"", b"last"]


async def test_what_is_asked_of_a_log_reaches_the_node(
    client: HttpClient, namespace: str, control_plane: ControlPlane
):
    asked: dict[str, str] = {}

    async def logs(request: web.Request) -> web.Response:
        asked.update(request.query, path=request.path)
        return web.Response(text="hello\n")

    async with kubelet(client, control_plane, logs) as node:
        await client.create(PODS, pod("talker", namespace, nodeName=node))
        lines = client.log(
            "talker", namespace, LogOptions(container="main", tail_lines=3, timestamps=True)
        )
        assert [line async for line in lines] == [b"hello"]
    assert asked == {
        "path": f"/containerLogs/{namespace}/talker/main",
        "tailLines": "3",
        "timestamps": "true",
    }
