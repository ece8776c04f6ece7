"""The baseline: the objects of jobs, created at once without an operator.

No operator can be faster than Kubernetes with the same objects. They are those of our operator.
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

NAME = "baseline"
USER = "plain-objects"
_CONCURRENCY = 8  # as many jobs as our operator reconciles at once

Objects = list[tuple[Resource, Manifest]]


def stages(job: MPIJob) -> list[Objects]:
    """All objects of a job; those that pods need come before the pods."""
    settings = Settings()
    workers = range(job.spec.worker_count)
    return [
        [
            (SERVICES, service(job)),
            (CONFIG_MAPS, config_map(job, workers, settings)),
            (SECRETS, ssh_secret(job, new_key_pair())),
        ],
        [(PODS, pod) for pod in worker_pods(job, workers, settings)],
        [(JOBS, launcher_job(job, settings, suspend=False))],
    ]


async def post(client: HttpClient, jobs: Sequence[Manifest]) -> None:
    """Create jobs with all their objects."""

    async def post_one(manifest: Manifest) -> None:
        job = decode_job(await client.create(MPIJOBS, manifest))
        for stage in stages(job):
            await asyncio.gather(*(client.create(*each) for each in stage))

    await at_once(post_one, jobs, _CONCURRENCY)


async def remove_workers(client: HttpClient, namespace: str) -> None:
    """Delete the workers, as the cleanPodPolicy of the jobs asks for."""
    found = await client.list(PODS, namespace, Selector(labels=WORKER_SELECTOR))
    names = [pod["metadata"]["name"] for pod in found.items]
    await at_once(lambda name: client.delete(PODS, name, namespace), names, _CONCURRENCY)
