"""What the API server rejects, with which message, and that our own validation agrees."""

import asyncio
from typing import Any

import pytest

from mpi_operator.api import InvalidJob, decode_job
from mpi_operator.kube import errors
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import Manifest
from tests.support.mpijobs import MPIJOBS, changed, mpijob, template, without

SPECS = "spec.mpiReplicaSpecs"
OURS, KUEUES = "kubeflow.org/mpi-operator", "kueue.x-k8s.io/multikueue"


def policy(**fields: Any) -> Manifest:
    return mpijob(runPolicy=fields)


REJECTED = [
    pytest.param(mpijob("1pi"), "metadata.name.*start with a letter", id="a name with a digit"),
    pytest.param(mpijob("a.b"), "metadata.name.*host names", id="a name with a dot"),
    pytest.param(mpijob("a" * 55), "metadata.name.*too long", id="a long name"),
    pytest.param(
        mpijob("a" * 54, worker={"replicas": 11}), "metadata.name.*too long", id="many workers"
    ),
    pytest.param(without(mpijob(), "spec"), "spec: Required", id="no spec"),
    pytest.param(without(mpijob(), SPECS), "mpiReplicaSpecs: Required", id="no roles"),
    pytest.param(
        without(mpijob(), f"{SPECS}.Launcher"), "Launcher.*Required value", id="no launcher"
    ),
    pytest.param(mpijob(launcher={"replicas": 2}), "Launcher.*must be 1", id="two launchers"),
    pytest.param(mpijob(launcher={"replicas": 0}), "Launcher.*must be 1", id="zero launchers"),
    pytest.param(mpijob(worker={"replicas": 0}), "Worker.*at least 1 unless", id="zero workers"),
    pytest.param(mpijob(worker={"replicas": -1}), "greater than or equal to 0", id="minus one"),
    pytest.param(
        mpijob(worker={"replicas": 2_000_000_000}), "less than or equal to 20000", id="two billion"
    ),
    pytest.param(
        mpijob(launcher={"template": {}}), "Launcher.*containers: Required", id="no template"
    ),
    pytest.param(
        mpijob(worker={"template": {"spec": {"containers": []}}}),
        "Worker.*containers: Required",
        id="no containers",
    ),
    pytest.param(
        mpijob(worker={"restartPolicy": "Always"}), "restartPolicy.*OnFailure", id="restart policy"
    ),
    pytest.param(mpijob(slotsPerWorker=-1), "slotsPerWorker.*equal to 0", id="negative slots"),
    pytest.param(mpijob(slotsPerWorker="1"), "slotsPerWorker.*integer", id="slots as a string"),
    pytest.param(mpijob(slotsPerWorker=2**31), "slotsPerWorker", id="too many slots"),
    pytest.param(mpijob(mpiImplementation="Open"), "mpiImplementation.*MPICH", id="another MPI"),
    pytest.param(
        mpijob(launcherCreationPolicy="Soon"), "launcherCreationPolicy.*AtStartup", id="a policy"
    ),
    pytest.param(policy(cleanPodPolicy="Some"), "cleanPodPolicy.*Running", id="another clean-up"),
    pytest.param(policy(ttlSecondsAfterFinished=-1), "ttlSeconds.*equal to 0", id="a negative TTL"),
    pytest.param(policy(activeDeadlineSeconds=-1), "activeDeadline.*equal to 0", id="a deadline"),
    pytest.param(policy(backoffLimit=-1), "backoffLimit.*equal to 0", id="a negative limit"),
    pytest.param(policy(managedBy="me"), "managedBy.*multikueue", id="another manager"),
    pytest.param(
        policy(schedulingPolicy={"minResources": {"cpu": "lots"}}), "cpu", id="no quantity"
    ),
    pytest.param(
        changed(mpijob(), f"{SPECS}.Worker.template.spec.containers.0", {"image": "x"}),
        "name: Required",
        id="a container without a name",
    ),
    pytest.param(
        mpijob(worker={"template": template(containers=[{"name": "a"}, {"name": "a"}])}),
        "containers\\[1\\]: Duplicate",
        id="two containers of one name",
    ),
]

ACCEPTED = [
    pytest.param(mpijob("a" * 54), id="the longest name"),
    pytest.param(mpijob("a" * 53, worker={"replicas": 100}), id="the longest name with 99"),
    pytest.param(without(mpijob(), f"{SPECS}.Worker"), id="no workers"),
    pytest.param(mpijob(worker={"replicas": 20_000}), id="as many as there can be"),
    pytest.param(mpijob(runLauncherAsWorker=True, worker={"replicas": 0}), id="launcher only"),
    pytest.param(mpijob(slotsPerWorker=0), id="no slots"),
    pytest.param(mpijob(slotsPerWorker=None, runPolicy=None), id="nulls"),
    pytest.param(
        mpijob(worker={"template": template(nodeSelector={"a": None})}), id="a null in it"
    ),
    pytest.param(changed(mpijob(), f"{SPECS}.Worker", None), id="a role that is null"),
    pytest.param(mpijob(sshAuthMountPath=""), id="an empty path"),
    pytest.param(mpijob(worker={"template": template(dnsPolicy="")}), id="an empty choice"),
    pytest.param(policy(managedBy=KUEUES, suspend=True), id="managed by Kueue"),
    pytest.param(policy(schedulingPolicy={"minAvailable": 3, "queue": "q"}), id="a gang"),
    pytest.param(changed(mpijob(), f"{SPECS}.Boss", {}), id="another role"),
]


async def rejection(client: HttpClient, namespace: str, job: Manifest) -> str:
    """The server's error about a job; empty if it accepts the job."""
    try:
        await client.create(MPIJOBS, changed(job, "metadata.namespace", namespace))
    except (errors.Invalid, errors.BadRequest) as error:
        return str(error)
    return ""


def is_valid(job: Manifest) -> bool:
    try:
        decode_job(job)
    except InvalidJob:
        return False
    return True


@pytest.mark.parametrize(("job", "message"), REJECTED)
async def test_we_reject_what_the_server_rejects(client: HttpClient, namespace: str, job, message):
    with pytest.raises(errors.Invalid, match=message):
        await client.create(MPIJOBS, changed(job, "metadata.namespace", namespace))
    assert not is_valid(job)


@pytest.mark.parametrize("job", ACCEPTED)
async def test_we_accept_what_the_server_accepts(client: HttpClient, namespace: str, job):
    assert await rejection(client, namespace, job) == ""
    assert is_valid(job)


ODD: list[Any] = [
    *(None, "", "x", "Never", "None", "5", "1Gi", -1, 0, 1, 2, 2**31, 2**63, 0.5, True),
    *([], {}, ["x"], {"a": "b"}, {"a": 1}, [{}], [{"name": "a"}], [None], {"name": "a"}),
]
PLACES = [
    "spec",
    SPECS,
    f"{SPECS}.Launcher",
    f"{SPECS}.Launcher.replicas",
    f"{SPECS}.Worker",
    f"{SPECS}.Worker.replicas",
    f"{SPECS}.Worker.restartPolicy",
    f"{SPECS}.Worker.template",
    f"{SPECS}.Worker.template.metadata",
    f"{SPECS}.Worker.template.metadata.labels",
    f"{SPECS}.Worker.template.spec",
    f"{SPECS}.Worker.template.spec.nodeSelector",
    f"{SPECS}.Worker.template.spec.restartPolicy",
    f"{SPECS}.Worker.template.spec.volumes",
    f"{SPECS}.Worker.template.spec.imagePullSecrets",
    f"{SPECS}.Worker.template.spec.terminationGracePeriodSeconds",
    f"{SPECS}.Worker.template.spec.containers",
    f"{SPECS}.Worker.template.spec.containers.0",
    f"{SPECS}.Worker.template.spec.containers.0.command",
    f"{SPECS}.Worker.template.spec.containers.0.resources.limits",
    f"{SPECS}.Boss",
    "spec.slotsPerWorker",
    "spec.runLauncherAsWorker",
    "spec.sshAuthMountPath",
    "spec.mpiImplementation",
    "spec.launcherCreationPolicy",
    "spec.runPolicy",
    "spec.runPolicy.suspend",
    "spec.runPolicy.backoffLimit",
    "spec.runPolicy.cleanPodPolicy",
    "spec.runPolicy.schedulingPolicy",
    "spec.runPolicy.schedulingPolicy.minResources",
]
BASE = mpijob(
    worker={
        "template": {
            "metadata": {"labels": {}},
            "spec": {"containers": [{"name": "mpi", "resources": {"limits": {}}}]},
        }
    },
    runPolicy={"schedulingPolicy": {}},
)


@pytest.mark.parametrize("place", PLACES)
async def test_we_agree_with_the_server_about_odd_values(
    client: HttpClient, namespace: str, place: str
):
    named = [changed(BASE, "metadata.name", f"pi-{number}") for number in range(len(ODD))]
    jobs = [changed(job, place, odd) for job, odd in zip(named, ODD, strict=True)]
    messages = await asyncio.gather(*(rejection(client, namespace, job) for job in jobs))
    verdicts = zip(ODD, map(is_valid, jobs), messages, strict=True)
    assert [(odd, error) for odd, is_valid, error in verdicts if is_valid != (error == "")] == []


# --- what may change later


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param({"managedBy": OURS}, {"managedBy": KUEUES}, id="changed"),
        pytest.param({"managedBy": OURS}, {"managedBy": None}, id="removed"),
        pytest.param({"managedBy": OURS}, None, id="removed with all the rest"),
        pytest.param({}, {"managedBy": KUEUES}, id="added"),
        pytest.param(None, {"managedBy": KUEUES}, id="added with all the rest"),
    ],
)
async def test_managed_by_is_immutable(client: HttpClient, namespace: str, before, after):
    await client.create(MPIJOBS, mpijob("pi", namespace, runPolicy=before))
    with pytest.raises(errors.Invalid, match=r"managedBy.*immutable"):
        await client.patch(MPIJOBS, "pi", {"spec": {"runPolicy": after}}, namespace)


async def test_kueue_may_change_what_it_has_to(client: HttpClient, namespace: str):
    job = mpijob("pi", namespace, runPolicy={"suspend": True, "managedBy": OURS})
    await client.create(MPIJOBS, job)
    admitted = template(
        nodeSelector={"gpu": "yes"},
        tolerations=[{"operator": "Exists"}],
        schedulingGates=[{"name": "kueue.x-k8s.io/topology"}],
    )
    role = {"template": admitted | {"metadata": {"labels": {"kueue.x-k8s.io/podset": "worker"}}}}
    patch = {"spec": {"runPolicy": {"suspend": False}, "mpiReplicaSpecs": {"Worker": role}}}
    stored = await client.patch(MPIJOBS, "pi", patch, namespace)
    assert stored["spec"]["runPolicy"]["suspend"] is False
    assert stored["spec"]["mpiReplicaSpecs"]["Worker"]["template"] == role["template"]
