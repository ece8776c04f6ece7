"""The Job controller of this machine counts as Kubernetes' does."""

import asyncio
from datetime import timedelta

import pytest

from mpi_operator.local.apiserver.cluster import LocalCluster
from mpi_operator.local.jobs.job_controller import JobController
from mpi_operator.local.jobs.job_decisions import PodFailureBackoff
from tests.contract.job_backoff import JobBackoffContract
from tests.unit.local.clusters import a_cluster

QUICK = PodFailureBackoff(initial=timedelta(milliseconds=10), maximum=timedelta(seconds=1))


class TestThisMachine(JobBackoffContract):
    @pytest.fixture
    async def client(self):
        cluster: LocalCluster = a_cluster()
        controller = asyncio.create_task(JobController(cluster, backoff=QUICK).run())
        yield cluster
        controller.cancel()
        await asyncio.gather(controller, return_exceptions=True)

    @pytest.fixture
    def namespace(self) -> str:
        return "here"
