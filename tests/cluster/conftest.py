"""A real cluster with two nodes, started once for all tests here.

Tests may break it (`cluster.kill_node(1)`, `cluster.cut_node(0)`, …): it is mended after each.
"""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from devcluster import image_builds, images, packages
from devcluster.binaries import CannotBuild
from devcluster.cluster import Cluster
from tests.support import permissions
from tests.support.pods import BUSYBOX

StartCluster = Callable[..., Cluster]
Loaded = Callable[[str], str]

_BUSYBOX_PACKAGE = packages.Package("busybox-static", ("busybox",))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first test waits for the cluster and its images; pods and lost nodes take their time."""
    for item in items:
        if "tests/cluster" in item.path.as_posix() and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A cluster with two nodes, both ready."""
    # All wait for these tests in the end: they, and what they start, go first.
    with suppress(PermissionError):  # without root they are skipped, and say so
        os.setpriority(os.PRIO_PROCESS, 0, -5)
    # Long enough for a busy machine, short enough that a lost node is noticed within a test.
    autoscaler = ("--horizontal-pod-autoscaler-sync-period=1s",)
    with started_cluster(
        nodes=2, node_grace_seconds=15, controller_manager_args=autoscaler
    ) as shared:
        yield shared


@pytest.fixture(autouse=True)
def _mended(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whatever a test broke is whole for the next one."""
    shared = request.getfixturevalue("cluster") if "cluster" in request.fixturenames else None
    yield
    if shared:
        shared.mend()


@pytest.fixture
def start_cluster() -> Iterator[StartCluster]:
    """Starts clusters of a test's own."""
    with ExitStack() as stack:

        def start(**options: Any) -> Cluster:
            return stack.enter_context(started_cluster(**options))

        yield start


@contextmanager
def started_cluster(**options: Any) -> Iterator[Cluster]:
    cluster = Cluster(**options, **permissions.options())
    try:
        cluster.start()
    except CannotBuild as error:
        pytest.skip(str(error))
    try:
        yield cluster
        permissions.save(cluster, "cluster")
    finally:
        cluster.stop()


@pytest.fixture(scope="session")
def busybox(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of an image with a shell and the usual tools, 2 MB."""
    try:
        packages.provide([_BUSYBOX_PACKAGE])
    except CannotBuild as error:
        pytest.skip(str(error))
    found = packages.find("busybox")
    assert found, "it has just been provided"
    program = Path(found)
    tools = subprocess.run([program, "--list"], check=True, capture_output=True, text=True).stdout
    return images.pack(
        tmp_path_factory.mktemp("images") / "busybox.tar",
        name=BUSYBOX,
        files={"bin/busybox": program},
        links={f"bin/{tool}": "busybox" for tool in tools.split() if tool != "busybox"},
        command=["sh"],
    )


@pytest.fixture(scope="session")
def loaded(cluster: Cluster) -> Loaded:
    """Puts an image of the catalog onto the nodes, and says what it is called there."""

    def load(name: str) -> str:
        try:
            archives = image_builds.provide([name])
        except CannotBuild as error:
            pytest.skip(str(error))
        cluster.load(*archives.values())
        return image_builds.IMAGES[name].tags[0]

    return load


@pytest.fixture
def namespace(cluster: Cluster, busybox: Path) -> Iterator[str]:
    """A namespace of the test's own, on a cluster whose nodes have the image of `busybox`."""
    cluster.load(busybox)
    admin = cluster.endpoint()
    created = admin.request("POST", "/api/v1/namespaces", {"metadata": {"generateName": "test-"}})
    name: str = created.json()["metadata"]["name"]
    yield name
    # Otherwise it waits for half a minute for shells that do not listen.
    cluster.kubectl("delete", "pods", "--all", "--namespace", name, "--grace-period=0", "--force")
    admin.request("DELETE", f"/api/v1/namespaces/{name}")
