"""When a watch ends."""

import pytest

from mpi_operator.kube.client import WatchOptions
from mpi_operator.kube.resources import CONFIG_MAPS
from tests.unit.local.clusters import a_cluster, virtual_now

pytestmark = pytest.mark.looptime


async def test_a_timer_that_is_early_by_less_than_a_tick_ends_it_too():
    cluster = a_cluster(clock=virtual_now)
    # In ticks of a microsecond the last part of it never passes.
    events = cluster.watch(
        CONFIG_MAPS, options=WatchOptions(initial_events=True, timeout=5 + 4e-10)
    )
    assert len([event async for event in events]) == 2  # what is there, and how far it has come
