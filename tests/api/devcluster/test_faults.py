"""Breaking the API server on purpose, and what is left afterwards."""

import itertools
from collections.abc import Callable

import pytest

from devcluster.control_plane import APISERVER, ControlPlane

pytestmark = pytest.mark.api

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
_numbers = itertools.count()


def create_several(control_plane: ControlPlane) -> str:
    """Store some objects and return the resource version of the first."""
    first, *_ = [create(control_plane) for _ in range(3)]
    return first


def create(control_plane: ControlPlane) -> str:
    """Store something new and return its resource version."""
    name = f"item-{next(_numbers)}"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    answer = control_plane.endpoint().request("POST", CONFIG_MAPS, body)
    version: str = answer.json()["metadata"]["resourceVersion"]
    return version


def count(control_plane: ControlPlane) -> int:
    return len(control_plane.endpoint().request("GET", CONFIG_MAPS).json()["items"])


def first_event_since(control_plane: ControlPlane, version: str) -> tuple[str, int | None]:
    """Type and error code of the first event of a watch."""
    path = f"{CONFIG_MAPS}?watch=1&resourceVersion={version}"
    event = next(iter(control_plane.endpoint().stream(path)))
    return event["type"], event["object"].get("code")


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(ControlPlane.stop_apiserver, id="stopped"),
        pytest.param(ControlPlane.kill_apiserver, id="killed"),
    ],
)
def test_the_api_server_comes_back_on_its_port_with_its_data(
    minimal, end: Callable[[ControlPlane], None]
):
    create(minimal)
    port, items = minimal.ports[APISERVER], count(minimal)
    end(minimal)
    with pytest.raises(ConnectionRefusedError):
        count(minimal)
    minimal.start_apiserver()
    assert minimal.ports[APISERVER] == port
    assert count(minimal) == items


def test_a_paused_api_server_accepts_connections_and_does_not_answer(minimal):
    minimal.pause_apiserver()
    try:
        with pytest.raises(TimeoutError):
            minimal.endpoint().request("GET", "/readyz", timeout=0.5)
    finally:
        minimal.resume_apiserver()  # or others would wait for it in vain
    assert minimal.endpoint().request("GET", "/readyz").status == 200


def test_after_compaction_and_a_restart_an_old_version_is_gone(minimal):
    old = create_several(minimal)
    minimal.compact()
    assert first_event_since(minimal, old) == ("ADDED", None)  # the watch cache still knows
    minimal.kill_apiserver()
    minimal.start_apiserver()
    assert first_event_since(minimal, old) == ("ERROR", 410)


def test_without_a_watch_cache_compaction_alone_makes_an_old_version_go(start_control_plane):
    control_plane = start_control_plane(apiserver_args=["--watch-cache-sizes=configmaps#0"])
    old = create_several(control_plane)
    assert first_event_since(control_plane, old) == ("ADDED", None)
    control_plane.compact()
    assert first_event_since(control_plane, old) == ("ERROR", 410)
