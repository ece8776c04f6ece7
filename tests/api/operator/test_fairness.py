"""A big job does not keep small ones waiting: jobs take turns at writing."""

import asyncio
from pathlib import Path

import pytest
from aiohttp import web

from devcluster.control_plane import ControlPlane
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import CONFIG_MAPS, JOBS, PODS, SECRETS, SERVICES
from tests.support.api_proxy import Forward, api_proxy
from tests.support.jobs import Jobs
from tests.support.mirror import Mirror, mirrored
from tests.support.mpijobs import mpijob
from tests.support.operator import operator

_BIG = 1000
_OBJECTS = ((SERVICES, "small"), (CONFIG_MAPS, "small-config"), (SECRETS, "small-ssh"))
_PODS = ("small-worker-0", "small-worker-1")


class Slow:
    """A server that takes its time for each write, so that a thousand of them take seconds."""

    async def write(self, request: web.Request, forward: Forward) -> web.StreamResponse:
        await asyncio.sleep(0.25)
        return await forward()


@pytest.mark.timeout(180)
async def test_a_job_of_two_is_complete_while_a_job_of_a_thousand_is_far_from_it(
    client: HttpClient,
    control_plane: ControlPlane,
    namespace: str,
    jobs: Jobs,
    tmp_path: Path,
) -> None:
    kinds = (PODS, JOBS, SERVICES, CONFIG_MAPS, SECRETS)
    async with (
        api_proxy(control_plane, tmp_path, Slow()) as admin,
        operator(client, admin, namespace, tmp_path),
        mirrored(client, *kinds) as mirror,
    ):
        await jobs.submit(mpijob("big", worker={"replicas": _BIG}))
        await mirror.until(lambda: _workers(mirror, namespace) >= 100, namespace)
        await jobs.submit(mpijob("small"))
        at_first = _workers(mirror, namespace)
        await mirror.until(lambda: _is_complete(mirror, namespace), namespace)
        at_last = _workers(mirror, namespace)
        print(f"{at_first} workers of the big one when the small one came, {at_last} at its end")
        # Were it served after those who came first, this would be all of them.
        assert at_last < _BIG / 2
        await mirror.until(lambda: _workers(mirror, namespace) == _BIG, namespace)


def _workers(mirror: Mirror, namespace: str) -> int:
    names = (pod["metadata"]["name"] for pod in mirror.all(PODS, namespace))
    return sum(name.startswith("big-worker-") for name in names)


def _is_complete(mirror: Mirror, namespace: str) -> bool:
    wanted = (*_OBJECTS, (JOBS, "small-launcher"), *((PODS, name) for name in _PODS))
    return all(mirror.get(resource, name, namespace) for resource, name in wanted)
