"""What people see with kubectl: the installation, the columns, a job of 2019, and scaling."""

import json
from typing import Any

import pytest
import yaml

from mpi_operator.kube.http import HttpClient
from tests.support.kubectl import Kubectl
from tests.support.versions import RESOURCES, typical, v1alpha1

from .conftest import Installation

# As MPI Operator 0.2 printed it, without metadata that every cluster makes.
JOB_OF_2019 = """
apiVersion: kubeflow.org/v1alpha2
kind: MPIJob
metadata:
  name: tensorflow-benchmarks
spec:
  cleanPodPolicy: Running
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template:
        spec:
          containers:
          - command: [mpirun, --allow-run-as-root, -np, "2", -bind-to, none, -map-by, slot, -x,
              NCCL_DEBUG=INFO, -x, LD_LIBRARY_PATH, -x, PATH, -mca, pml, ob1, -mca, btl, ^openib,
              python, scripts/tf_cnn_benchmarks/tf_cnn_benchmarks.py, --model=resnet101,
              --batch_size=64, --variable_update=horovod]
            image: mpioperator/tensorflow-benchmarks:latest
            name: tensorflow-benchmarks
    Worker:
      replicas: 1
      template:
        spec:
          containers:
          - image: mpioperator/tensorflow-benchmarks:latest
            name: tensorflow-benchmarks
            resources:
              limits:
                nvidia.com/gpu: 2
  slotsPerWorker: 2
"""
STATUS_OF_2019 = """
completionTime: "2019-07-09T22:17:06Z"
conditions:
- lastTransitionTime: "2019-07-09T22:15:51Z"
  lastUpdateTime: "2019-07-09T22:15:51Z"
  message: MPIJob default/tensorflow-benchmarks is created.
  reason: MPIJobCreated
  status: "True"
  type: Created
- lastTransitionTime: "2019-07-09T22:15:54Z"
  lastUpdateTime: "2019-07-09T22:15:54Z"
  message: MPIJob default/tensorflow-benchmarks is running.
  reason: MPIJobRunning
  status: "False"
  type: Running
- lastTransitionTime: "2019-07-09T22:17:06Z"
  lastUpdateTime: "2019-07-09T22:17:06Z"
  message: MPIJob default/tensorflow-benchmarks successfully completed.
  reason: MPIJobSucceeded
  status: "True"
  type: Succeeded
replicaStatuses:
  Launcher:
    succeeded: 1
  Worker: {}
startTime: "2019-07-09T22:15:51Z"
"""


def test_one_file_installs_everything(installation: Installation):
    assert installation.first.code == 0
    assert installation.first.errors == ""
    outcomes = {line.rpartition(" ")[2] for line in installation.first.output.splitlines()}
    assert outcomes == {"created"}


def test_a_second_time_it_changes_nothing(installation: Installation):
    assert installation.second.code == 0
    changed = [line for line in installation.second.output.splitlines() if "unchanged" not in line]
    # For these kinds kubectl always sends a patch: of an empty list, and of a selector.
    usual = ("clusterrole.rbac.authorization.k8s.io/kubeflow-mpijobs-admin", "poddisruptionbudget")
    assert not [line for line in changed if not line.startswith(usual)]


async def test_a_job_of_2019_looks_as_it_did(client: HttpClient, namespace: str, kubectl: Kubectl):
    job = yaml.safe_load(JOB_OF_2019)
    applied = kubectl("apply", "-n", namespace, "-f", "-", stdin=JOB_OF_2019)
    assert "MPIJob is deprecated; use kubeflow.org/v2beta1" in applied.errors
    status = yaml.safe_load(STATUS_OF_2019)
    await client.patch(
        RESOURCES["v2beta1"],
        "tensorflow-benchmarks",
        {"status": as_the_operator_writes_it(status)},
        namespace,
        subresource="status",
    )
    resource = "mpijobs.v1alpha2.kubeflow.org"
    printed = kubectl("get", resource, "tensorflow-benchmarks", "-n", namespace, "-o", "yaml")
    shown = yaml.safe_load(printed.output)
    assert shown["spec"] == job["spec"]
    assert shown["status"] == status | {"observedGeneration": 1, "selector": "a=b"}


def as_the_operator_writes_it(status: dict[str, Any]) -> dict[str, Any]:
    zeros = {"active": 0, "succeeded": 0, "failed": 0}
    roles = {role: zeros | counts for role, counts in status["replicaStatuses"].items()}
    return status | {"replicaStatuses": roles, "observedGeneration": 1, "selector": "a=b"}


async def test_a_total_of_gpus_cannot_be_scaled(
    client: HttpClient, namespace: str, kubectl: Kubectl
):
    await client.create(RESOURCES["v1alpha1"], v1alpha1("gpus", namespace, gpus=16))
    job = "mpijobs.v1alpha1.kubeflow.org/gpus"
    scaled = kubectl("scale", job, "-n", namespace, "--replicas=3")
    assert scaled.code != 0
    assert "a job with gpus or processingUnits cannot be scaled" in scaled.errors
    stored = await client.get(RESOURCES["v1alpha1"], "gpus", namespace)
    assert (stored["spec"]["gpus"], stored["spec"].get("replicas")) == (16, None)


async def test_where_workers_are_counted_that_job_can_be_scaled(
    client: HttpClient, namespace: str, kubectl: Kubectl
):
    await client.create(RESOURCES["v1alpha1"], v1alpha1("workers", namespace, gpus=16))
    job = "mpijobs.v2beta1.kubeflow.org/workers"
    assert kubectl("scale", job, "-n", namespace, "--replicas=3").code == 0
    stored = await client.get(RESOURCES["v1alpha1"], "workers", namespace)
    assert (stored["spec"].get("gpus"), stored["spec"]["replicas"]) == (None, 3)


@pytest.mark.parametrize(
    ("version", "columns", "cells"),
    [
        pytest.param(
            "v2beta1", "NAME STATE WORKERS READY AGE", ["Running", "2", "1"], id="v2beta1"
        ),
        pytest.param("v1", "NAME STATE WORKERS READY AGE", ["Running", "2", "1"], id="v1"),
        pytest.param(
            "v1alpha2", "NAME STATE WORKERS READY AGE", ["Running", "2", "1"], id="v1alpha2"
        ),
        pytest.param(
            "v1alpha1",
            "NAME STATE WORKERS GPUS UNITS READY AGE",
            ["Running", "2", "1"],
            id="v1alpha1",
        ),
    ],
)
async def test_every_version_has_columns(
    client: HttpClient, namespace: str, kubectl: Kubectl, version: str, columns, cells
):
    name = f"columns-{version}"
    await client.create(RESOURCES[version], typical(version, name, namespace))
    running = {"type": "Running", "status": "True"}
    status = {"conditions": [running], "replicaStatuses": {"Worker": {"active": 1}}}
    await client.patch(
        RESOURCES["v2beta1"], name, {"status": status}, namespace, subresource="status"
    )
    printed = kubectl("get", f"mpijobs.{version}.kubeflow.org", name, "-n", namespace)
    header, row = printed.output.splitlines()
    assert header.split() == columns.split()
    assert row.split()[1:-1] == cells


@pytest.mark.parametrize("total", ["gpus", "processingUnits"])
async def test_each_kind_of_total_has_a_column(
    client: HttpClient, namespace: str, kubectl: Kubectl, total: str
):
    name = f"columns-{total.lower()}"
    await client.create(RESOURCES["v1alpha1"], v1alpha1(name, namespace, **{total: 16}))
    printed = kubectl("get", "mpijobs.v1alpha1.kubeflow.org", name, "-n", namespace)
    _, row = printed.output.splitlines()
    assert "16" in row.split()


@pytest.mark.parametrize("version", RESOURCES)
async def test_every_version_has_subresources(client: HttpClient, version: str):
    group = json.loads(await client.raw(f"/apis/kubeflow.org/{version}"))
    served = {each["name"] for each in group["resources"]}
    assert served == {"mpijobs", "mpijobs/status", "mpijobs/scale"}


@pytest.mark.parametrize("version", RESOURCES)
async def test_the_server_can_explain_every_version(client: HttpClient, version: str):
    openapi = json.loads(await client.raw(f"/openapi/v3/apis/kubeflow.org/{version}"))
    job = openapi["components"]["schemas"][f"org.kubeflow.{version}.MPIJob"]
    assert job["properties"]["spec"]["properties"]["slotsPerWorker"]["description"]
