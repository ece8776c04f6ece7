"""The CRD on a real API server: what it stores, prints, explains and scales."""

import json
import ssl
from contextlib import closing, suppress
from datetime import UTC, datetime
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from devcluster.control_plane import ControlPlane
from devcluster.endpoint import Answer
from mpi_operator.api import MPIJobStatus, conditions, decode_job, manifest
from mpi_operator.api.types import ConditionStatus, ConditionType, ReplicaStatus, ReplicaStatuses
from mpi_operator.kube import errors
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, Manifest
from tests.support.mpijobs import MPIJOBS, changed, mpijob, template, without
from tests.support.waiting import until

FILE = Path(__file__).parents[3] / "deploy/v2beta1-only/mpijobs.kubeflow.org.yaml"
NAME = "mpijobs.kubeflow.org"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
WORKER = "spec.mpiReplicaSpecs.Worker"
DEFAULTS = {
    "slotsPerWorker": 1,
    "runLauncherAsWorker": False,
    "sshAuthMountPath": "/root/.ssh",
    "launcherCreationPolicy": "AtStartup",
    "mpiImplementation": "OpenMPI",
}


# --- the CRD itself


async def test_the_server_accepts_the_crd(client: HttpClient):
    stored = await client.get(CUSTOM_RESOURCE_DEFINITIONS, NAME)
    statuses = {each["type"]: each["status"] for each in stored["status"]["conditions"]}
    assert statuses == {"NamesAccepted": "True", "Established": "True"}


async def test_the_file_can_be_applied_with_the_annotation_that_kubectl_makes(client: HttpClient):
    crd = yaml.safe_load(FILE.read_text())
    crd["metadata"]["annotations"] = {LAST_APPLIED: json.dumps(crd) + "\n"}
    applied = await client.apply(CUSTOM_RESOURCE_DEFINITIONS, crd, manager="kubectl", force=True)
    assert LAST_APPLIED in applied["metadata"]["annotations"]


async def test_short_names_and_category(client: HttpClient):
    group = await described(client, "/apis/kubeflow.org/v2beta1")
    resources = {each["name"]: each for each in group["resources"]}
    assert resources["mpijobs"]["shortNames"] == ["mj", "mpij"]
    assert resources["mpijobs"]["categories"] == ["all"]
    assert resources.keys() == {"mpijobs", "mpijobs/status", "mpijobs/scale"}


async def test_the_server_can_explain_every_field(client: HttpClient):
    openapi = await described(client, "/openapi/v3/apis/kubeflow.org/v2beta1")
    spec = openapi["components"]["schemas"]["org.kubeflow.v2beta1.MPIJob"]["properties"]["spec"]
    assert spec["properties"]["slotsPerWorker"]["description"]
    role = spec["properties"]["mpiReplicaSpecs"]["additionalProperties"]["properties"]
    assert "nodeSelector" in role["template"]["properties"]["spec"]["properties"]


async def described(client: HttpClient, path: str) -> Any:
    """The server's description of a new kind, which follows up to 1s after it serves the kind."""

    answers = list[bytes]()

    async def is_there() -> bool:
        with suppress(errors.NotFound):
            answers.append(await client.raw(path))
        return bool(answers)

    await until(is_there)
    return json.loads(answers[0])


# --- what is stored


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="Open MPI"),
        pytest.param({"mpiImplementation": "Intel"}, id="Intel MPI"),
        pytest.param({"mpiImplementation": "MPICH", "slotsPerWorker": 4}, id="MPICH"),
        pytest.param({"runLauncherAsWorker": True}, id="the launcher works too"),
        pytest.param({"launcherCreationPolicy": "WaitForWorkersReady"}, id="wait for workers"),
        pytest.param({"sshAuthMountPath": "/home/mpiuser/.ssh"}, id="not as root"),
    ],
)
async def test_a_job_is_stored_with_its_defaults(client: HttpClient, namespace: str, spec):
    stored = await client.create(MPIJOBS, mpijob("pi", namespace, **spec))
    del stored["spec"]["mpiReplicaSpecs"]
    assert stored["spec"] == DEFAULTS | spec


async def test_a_run_policy_gets_its_defaults_too(client: HttpClient, namespace: str):
    stored = await client.create(MPIJOBS, mpijob("pi", namespace, runPolicy={"backoffLimit": 1}))
    expected = {"backoffLimit": 1, "cleanPodPolicy": "None", "suspend": False}
    assert stored["spec"]["runPolicy"] == expected


async def test_a_role_without_replicas_has_one(client: HttpClient, namespace: str):
    stored = await client.create(MPIJOBS, without(mpijob("pi", namespace), f"{WORKER}.replicas"))
    roles = stored["spec"]["mpiReplicaSpecs"]
    assert {role: spec["replicas"] for role, spec in roles.items()} == {"Launcher": 1, "Worker": 1}


async def test_a_template_is_stored_as_it_was_written(client: HttpClient, namespace: str):
    written = rich_template()
    stored = await client.create(
        MPIJOBS, mpijob("pi", namespace, worker={"replicas": 1, "template": written})
    )
    assert stored["spec"]["mpiReplicaSpecs"]["Worker"]["template"] == written


def rich_template() -> Manifest:
    container = {
        "name": "mpi",
        "image": "example.com/mpi:1",
        "command": ["/usr/sbin/sshd"],
        "args": ["-De"],
        "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "resources": {"limits": {"nvidia.com/gpu": 1, "memory": "2Gi"}, "requests": {"cpu": "1"}},
        "securityContext": {"runAsUser": 1000, "capabilities": {"add": ["NET_BIND_SERVICE"]}},
        "readinessProbe": {"tcpSocket": {"port": 2222}, "initialDelaySeconds": 2},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    spec = {
        "containers": [container],
        "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "affinity": {
            "podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
                ]
            }
        },
        "volumes": [{"name": "data", "emptyDir": {"sizeLimit": "1Gi"}}],
        "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}],
    }
    metadata = {"labels": {"a": "b"}, "annotations": {"c": "d"}, "name": "n"}
    return {"metadata": metadata, "spec": spec}


async def test_an_unknown_role_is_kept(client: HttpClient, namespace: str):
    job = changed(mpijob("pi", namespace), "spec.mpiReplicaSpecs.Boss", {"replicas": 3})
    stored = await client.create(MPIJOBS, job)
    assert stored["spec"]["mpiReplicaSpecs"]["Boss"] == {"replicas": 3}


async def test_a_stored_job_can_be_decoded(client: HttpClient, namespace: str):
    written = mpijob("pi", namespace)
    stored = decode_job(await client.create(MPIJOBS, written))
    assert stored.spec == decode_job(written).spec
    assert stored.metadata.generation == 1
    assert stored.metadata.creation_timestamp


async def test_a_job_that_we_write_is_accepted(client: HttpClient, namespace: str):
    job = decode_job(mpijob("pi", namespace, runPolicy={"schedulingPolicy": {"minAvailable": 3}}))
    stored = await client.create(MPIJOBS, manifest(job))
    assert decode_job(stored).spec == job.spec


async def test_a_status_that_we_write_is_stored_as_it_is(client: HttpClient, namespace: str):
    job = decode_job(await client.create(MPIJOBS, mpijob("pi", namespace)))
    created = conditions.with_condition(
        (), ConditionType.CREATED, ConditionStatus.TRUE, "MPIJobCreated", "…", now=datetime.now(UTC)
    )
    status = MPIJobStatus(
        conditions=created,
        replica_statuses=ReplicaStatuses(worker=ReplicaStatus(active=2)),
        observed_generation=1,
    )
    written = manifest(replace(job, status=status))
    stored = await client.replace(MPIJOBS, written, subresource="status")
    assert stored["status"] == written["status"]
    assert decode_job(stored).status == status


# --- typos


async def test_strict_validation_rejects_a_typo_in_a_template(
    control_plane: ControlPlane, namespace: str
):
    answer = posted_strictly(control_plane, misspelt(namespace))
    assert answer.status == 400
    field = "spec.mpiReplicaSpecs.Worker.template.spec.nodeSelecter"
    assert f'unknown field "{field}"' in answer.json()["message"]


async def test_strict_validation_accepts_the_job_without_the_typo(
    control_plane: ControlPlane, namespace: str
):
    assert posted_strictly(control_plane, mpijob("pi", namespace)).status == 201


async def test_otherwise_a_typo_is_dropped(client: HttpClient, namespace: str):
    stored = await client.create(MPIJOBS, misspelt(namespace))
    assert stored["spec"]["mpiReplicaSpecs"]["Worker"]["template"] == template()


def misspelt(namespace: str) -> Manifest:
    return mpijob("pi", namespace, worker={"template": template(nodeSelecter={"gpu": "yes"})})


def posted_strictly(control_plane: ControlPlane, job: Manifest) -> Answer:
    """What kubectl does by default."""
    path = MPIJOBS.collection_path(job["metadata"]["namespace"])
    return control_plane.endpoint().request("POST", f"{path}?fieldValidation=Strict", job)


# --- scale


async def test_scale_shows_the_workers(client: HttpClient, namespace: str):
    await client.create(MPIJOBS, mpijob("pi", namespace))
    status = {"selector": "a=b", "replicaStatuses": {"Worker": {"active": 1}}}
    await client.patch(MPIJOBS, "pi", {"status": status}, namespace, subresource="status")
    scale = await client.get(MPIJOBS, "pi", namespace, subresource="scale")
    assert scale["spec"] == {"replicas": 2}
    assert scale["status"] == {"replicas": 1, "selector": "a=b"}


async def test_scale_changes_the_workers(client: HttpClient, namespace: str):
    await client.create(MPIJOBS, mpijob("pi", namespace))
    scale = await client.get(MPIJOBS, "pi", namespace, subresource="scale")
    scale["spec"]["replicas"] = 7
    await client.replace(MPIJOBS, scale, subresource="scale")
    assert decode_job(await client.get(MPIJOBS, "pi", namespace)).spec.worker_count == 7


async def test_scale_obeys_the_rules(client: HttpClient, namespace: str):
    await client.create(MPIJOBS, mpijob("pi", namespace))
    none = {"spec": {"replicas": 0}}
    with pytest.raises(errors.Invalid, match=r"Worker.*at least 1 unless"):
        await client.patch(MPIJOBS, "pi", none, namespace, subresource="scale")


# --- status


async def test_status_is_a_subresource(client: HttpClient, namespace: str):
    written = mpijob("pi", namespace) | {"status": {"selector": "a=b"}}
    stored = await client.create(MPIJOBS, written)
    assert "status" not in stored
    stored |= {"status": status(), "spec": {}}
    stored = await client.replace(MPIJOBS, stored, subresource="status")
    assert stored["status"] == status()
    assert stored["spec"]["mpiReplicaSpecs"]
    assert stored["metadata"]["generation"] == 1


def status() -> Manifest:
    moment = "2026-01-01T00:00:00Z"
    created = {
        "type": "Created",
        "status": "True",
        "reason": "MPIJobCreated",
        "message": "It is created.",
        "lastUpdateTime": moment,
        "lastTransitionTime": moment,
    }
    running = created | {"type": "Running", "reason": "MPIJobRunning"}
    return {
        "conditions": [created, running],
        "replicaStatuses": {
            "Launcher": {"active": 1, "succeeded": 0, "failed": 0},
            "Worker": {"active": 2, "succeeded": 0, "failed": 0},
        },
        "startTime": moment,
        "completionTime": moment,
        "lastReconcileTime": moment,
        "observedGeneration": 1,
        "selector": "a=b",
    }


# --- the table that kubectl prints


async def test_what_kubectl_prints(control_plane: ControlPlane, client: HttpClient, namespace: str):
    stored = await client.create(MPIJOBS, mpijob("pi", namespace))
    await client.replace(MPIJOBS, stored | {"status": status()}, subresource="status")
    columns, (row,) = table(control_plane, namespace)
    narrow = {name: cell for (name, is_wide), cell in zip(columns, row, strict=True) if not is_wide}
    assert list(narrow) == ["Name", "State", "Workers", "Ready", "Age"]
    assert narrow | {"Age": ""} == {
        "Name": "pi",
        "State": "Running",
        "Workers": 2,
        "Ready": 2,
        "Age": "",
    }


async def test_what_kubectl_prints_with_wide(
    control_plane: ControlPlane, client: HttpClient, namespace: str
):
    stored = await client.create(MPIJOBS, mpijob("pi", namespace))
    await client.replace(MPIJOBS, stored | {"status": status()}, subresource="status")
    columns, (row,) = table(control_plane, namespace)
    wide = {name: cell for (name, is_wide), cell in zip(columns, row, strict=True) if is_wide}
    assert list(wide) == ["MPI", "Slots", "Reason", "Started", "Finished"]
    assert (wide["MPI"], wide["Slots"], wide["Reason"]) == ("OpenMPI", 1, "MPIJobRunning")


async def test_what_kubectl_prints_of_a_new_job(
    control_plane: ControlPlane, client: HttpClient, namespace: str
):
    await client.create(MPIJOBS, mpijob("pi", namespace))
    columns, (row,) = table(control_plane, namespace)
    cells = dict(zip((name for name, _ in columns), row, strict=True))
    assert (cells["State"], cells["Workers"], cells["Ready"]) == (None, 2, None)


def table(
    control_plane: ControlPlane, namespace: str
) -> tuple[list[tuple[str, bool]], list[list[Any]]]:
    """The columns, each with whether only `-o wide` shows it, and the rows."""
    endpoint = control_plane.endpoint()
    tls = ssl.create_default_context(cafile=str(endpoint.ca))
    tls.load_cert_chain(str(endpoint.certificate), endpoint.key)
    with closing(HTTPSConnection(endpoint.address, endpoint.port, context=tls)) as connection:
        accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
        connection.request("GET", MPIJOBS.collection_path(namespace), headers=accept)
        answer = json.loads(connection.getresponse().read())
    columns = [(each["name"], each["priority"] > 0) for each in answer["columnDefinitions"]]
    return columns, [row["cells"] for row in answer["rows"]]
