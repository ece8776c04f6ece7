"""What people see who have nothing but kubectl."""

import re

from devcluster.cluster import Cluster
from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import pi

SELECTORS = (
    "training.kubeflow.org/job-name=pi,training.kubeflow.org/job-role=launcher",
    "mpi_job_name=pi,mpi_role_type=launcher",
    "mpi-job-name=pi,mpi-job-role=launcher",
)


async def test_a_job_is_created_and_described_and_its_logs_are_found_by_new_and_old_labels(
    lab: Lab, cluster: Cluster
) -> None:
    await lab.submit(pi())
    await lab.succeeds("pi")

    table = cluster.kubectl("get", "mpijobs", "-n", lab.namespace)
    whole = cluster.kubectl("get", "mpijob", "pi", "-n", lab.namespace, "-o", "yaml")

    assert re.search(r"^pi\s+Succeeded\b", table, re.MULTILINE), table
    assert "completionTime" in whole
    assert "type: Succeeded" in whole
    for selector in SELECTORS:
        log = cluster.kubectl("logs", "-n", lab.namespace, "-l", selector, "--tail=-1")
        assert "rank 1 of 2 on pi-worker-1" in log, selector
        assert "pi is about 3.14" in log, selector


def test_the_fields_of_a_job_are_explained(installation: object, cluster: Cluster) -> None:
    explained = cluster.kubectl("explain", "mpijob.spec")

    for field in ("launcherCreationPolicy", "mpiImplementation", "slotsPerWorker", "runPolicy"):
        assert field in explained
