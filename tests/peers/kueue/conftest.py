"""Kueue in the cluster, with its own manifests, and a queue for each test."""

from collections.abc import AsyncIterator

import pytest

from devcluster import kueue
from devcluster.binaries import CannotBuild
from devcluster.cluster import Cluster, CommandFailed
from tests.cluster.operator.installation import Installation
from tests.cluster.operator.lab import Lab
from tests.peers.kueue import queues
from tests.peers.kueue.queues import Queue
from tests.support.waiting import block_until


@pytest.fixture(scope="session")
def kueue_installed(cluster: Cluster, installation: Installation) -> None:
    """The manager is ready, and there are flavors and priorities for all tests."""
    try:
        kueue.install(cluster)
    except CannotBuild as error:
        pytest.skip(str(error))
    cluster.kubectl("label", "node", "node-1", queues.POOL_LABEL)
    block_until(lambda: _applied(cluster, queues.shared()), 60)


def _applied(cluster: Cluster, manifest: str) -> bool:
    """Whether objects could be applied: at first, its webhooks are not trusted yet."""
    try:
        cluster.kubectl("apply", "-f", "-", stdin=manifest)
    except CommandFailed as error:
        if "failed calling webhook" in str(error) or "conversion webhook" in str(error):
            return False
        raise
    return True


@pytest.fixture
async def queue(lab: Lab, cluster: Cluster, kueue_installed: None) -> AsyncIterator[Queue]:
    """A queue of the test's own, with room for one job at a time."""
    async with queues.created(lab, cluster, flavor="pool") as queue:
        yield queue


@pytest.fixture
async def host_queue(lab: Lab, cluster: Cluster, kueue_installed: None) -> AsyncIterator[Queue]:
    """The same, where Kueue chooses the host of each pod."""
    async with queues.created(lab, cluster, flavor="hosts") as queue:
        yield queue
