"""Jobs without an operator: what they consist of is posted at once, and nobody looks after it.

What Kubernetes takes for these objects, every operator has to let it take. They are ours, for they
have to be somebody's.
"""

import asyncio
from collections.abc import Sequence

from benchmarks.measure import at_once
from benchmarks.operators.jobs import MPIJOBS, WORKER_SELECTOR
from mpi_operator.api import MPIJob
from mpi_operator.api.decode import decode_job
from mpi_operator.build.config_map import config_map
from mpi_operator.build.launcher_job import launcher_job
from mpi_operator.build.service import service
from mpi_operator.build.settings import Settings
from mpi_operator.build.ssh_secret import ssh_secret
from mpi_operator.build.worker_pod import worker_pods
from mpi_operator.controller.execute import new_key_pair
from mpi_operator.kube.client import Selector
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import (
    CONFIG_MAPS,
    JOBS,
    PODS,
    SECRETS,
    SERVICES,
    Manifest,
    Resource,
)

NAME = "floor"
USER = "plain-objects"
_AT_ONCE = 8  # as many jobs as our operator works on

Objects = list[tuple[Resource, Manifest]]


def stages(job: MPIJob) -> list[Objects]:
    """All that a job consists of; what pods need comes before them."""
    settings = Settings()
    everybody = range(job.spec.worker_count)
    return [
        [
            (SERVICES, service(job)),
            (CONFIG_MAPS, config_map(job, everybody, settings)),
            (SECRETS, ssh_secret(job, new_key_pair())),
        ],
        [(PODS, pod) for pod in worker_pods(job, everybody, settings)],
        [(JOBS, launcher_job(job, settings, suspend=False))],
    ]


async def post(client: HttpClient, jobs: Sequence[Manifest]) -> None:
    """Make jobs, each with everything that it consists of."""

    async def post_one(manifest: Manifest) -> None:
        job = decode_job(await client.create(MPIJOBS, manifest))
        for stage in stages(job):
            await asyncio.gather(*(client.create(*each) for each in stage))

    await at_once(post_one, jobs, _AT_ONCE)


async def remove_workers(client: HttpClient, namespace: str) -> None:
    """What the clean-up policy of the jobs asks for."""
    found = await client.list(PODS, namespace, Selector(labels=WORKER_SELECTOR))
    names = [pod["metadata"]["name"] for pod in found.items]
    await at_once(lambda name: client.delete(PODS, name, namespace), names, _AT_ONCE)
