"""A cluster on which other operators came first. Afterwards ours is installed again."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster import image_builds
from devcluster.binaries import CannotBuild
from devcluster.cluster import Cluster
from tests.cluster.operator.installation import Installation
from tests.peers.adoption.switch import Switch

_FOLDER = Path(__file__).parent


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests that go back last, after all that look at what was adopted."""
    places = [index for index, item in enumerate(items) if _FOLDER in item.path.parents]
    ordered = sorted(
        (items[index] for index in places),
        key=lambda item: (item.path, "come_back" in item.name),
    )
    for index, item in zip(places, ordered, strict=True):
        items[index] = item


@pytest.fixture(scope="package")
def switch(cluster: Cluster) -> Iterator[Switch]:
    """Changes operators. Afterwards ours is there."""
    try:
        cluster.load(*image_builds.provide(["pi-openmpi-4"]).values())
    except CannotBuild as error:
        pytest.skip(str(error))
    switch = Switch(cluster)
    yield switch
    switch.clear()
    Installation(cluster).apply()
