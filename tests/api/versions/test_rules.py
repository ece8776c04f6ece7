"""What the API server and admission reject in older versions, with which message, and what not."""

from zlib import crc32

import pytest

from mpi_operator.kube import errors
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import Manifest, Resource
from tests.support.mpijobs import changed, mpijob, template, without
from tests.support.versions import RESOURCES, v1, v1alpha1, v1alpha2, workers

SPECS = "spec.mpiReplicaSpecs"
GPU = {"name": "a", "resources": {"limits": {"nvidia.com/gpu": 1}}}


def resource(job: Manifest) -> Resource:
    return RESOURCES[job["apiVersion"].rpartition("/")[2]]


def named(job: Manifest, namespace: str, request: pytest.FixtureRequest) -> Manifest:
    """A job in the shared namespace, with a name of its own unless the name matters."""
    if job["metadata"]["name"] == "pi":
        job = changed(job, "metadata.name", f"rule-{crc32(request.node.name.encode())}")
    return changed(job, "metadata.namespace", namespace)


REJECTED = [
    pytest.param(v1("1pi"), "metadata.name.*start with a letter", id="v1: a name with a digit"),
    pytest.param(v1("a" * 55), "metadata.name.*too long", id="v1: a long name"),
    pytest.param(v1alpha1("a" * 55, replicas=1), "metadata.name.*too long", id="v1alpha1: it too"),
    pytest.param(without(v1(), "spec"), "spec: Required", id="v1: no spec"),
    pytest.param(without(v1(), SPECS), "mpiReplicaSpecs: Required", id="v1: no roles"),
    pytest.param(
        without(v1alpha2(), f"{SPECS}.Launcher"), "needs a Launcher", id="v1alpha2: no launcher"
    ),
    pytest.param(v1(launcher={"replicas": 2}), "Launcher.*must be 1", id="v1: two launchers"),
    pytest.param(v1(worker={"template": {}}), "Worker.*containers: Required", id="v1: no template"),
    pytest.param(
        v1(worker={"template": {"spec": {"containers": []}}}),
        "at least one container",
        id="v1: no containers",
    ),
    pytest.param(
        v1(worker={"template": {"spec": {"containers": [{"image": "a"}]}}}),
        "name: Required",
        id="v1: a container without a name",
    ),
    pytest.param(
        v1(worker={"restartPolicy": "Sometimes"}), "restartPolicy.*ExitCode", id="v1: a policy"
    ),
    pytest.param(v1(worker={"replicas": 0}), "Worker.*at least 1", id="v1: no workers"),
    pytest.param(v1alpha2(worker={"replicas": 0}), "Worker.*at least 1", id="v1alpha2: no workers"),
    pytest.param(v1(slotsPerWorker=-1), "slotsPerWorker.*equal to 0", id="v1: negative slots"),
    pytest.param(v1(runPolicy={"managedBy": "me"}), "managedBy.*multikueue", id="v1: a manager"),
    pytest.param(
        v1(worker={"template": template(volumes={})}),
        r"mpiReplicaSpecs\[Worker\].template.spec.volumes.*must be an array",
        id="v1: an error in a template",
    ),
    pytest.param(v1alpha2(mpiDistribution="Intel"), "IntelMPI", id="v1alpha2: another MPI"),
    pytest.param(
        v1alpha2(cleanPodPolicy="Some"), "cleanPodPolicy.*Running", id="v1alpha2: cleanup"
    ),
    pytest.param(v1alpha1(), "one of gpus, processingUnits and replicas", id="v1alpha1: no total"),
    pytest.param(
        v1alpha1(gpus=8, replicas=1),
        "only one of gpus, processingUnits and replicas",
        id="v1alpha1: two totals",
    ),
    pytest.param(v1alpha1(gpus=3), "1, 2, 4 or a multiple of 8", id="v1alpha1: three GPUs"),
    pytest.param(v1alpha1(processingUnits=12), "1, 2, 4 or a multiple of 8", id="v1alpha1: units"),
    pytest.param(v1alpha1(gpus=0), "greater than or equal to 1", id="v1alpha1: no GPUs"),
    pytest.param(
        v1alpha1(gpus=8, gpusPerNode=3),
        "spec.gpus: Invalid value: 8: must be less than 3 or a multiple of it",
        id="v1alpha1: GPUs that do not divide",
    ),
    pytest.param(v1alpha1(replicas=0), "spec.replicas.*at least 1", id="v1alpha1: no replicas"),
    pytest.param(
        v1alpha1(replicas=1, processingResourceType="tpu"), "nvidia.com/gpu", id="v1alpha1: a type"
    ),
    pytest.param(v1alpha1(replicas=1, template={}), "container", id="v1alpha1: an empty template"),
]


@pytest.mark.parametrize(("job", "message"), REJECTED)
async def test_invalid_jobs_are_rejected(
    client: HttpClient, namespace: str, request: pytest.FixtureRequest, job, message
):
    with pytest.raises(errors.Invalid, match=message):
        await client.create(resource(job), named(job, namespace, request))


ACCEPTED = [
    pytest.param(v1("a" * 54), id="v1: the longest name"),
    pytest.param(without(v1(), f"{SPECS}.Worker"), id="v1: a launcher only"),
    pytest.param(
        v1(worker={"replicas": 0}, launcher={"template": template(containers=[GPU])}),
        id="v1: no workers, and a launcher with a GPU",
    ),
    pytest.param(v1(worker={"restartPolicy": "ExitCode"}), id="v1: a policy of its own"),
    pytest.param(v1(runPolicy={"managedBy": "kubeflow.org/training-operator"}), id="v1: manager"),
    pytest.param(v1(slotsPerWorker=None, runPolicy=None), id="v1: nulls"),
    pytest.param(v1(mpiImplementation="Intel", runLauncherAsWorker=True), id="v1: newer fields"),
    pytest.param(v1(madeUp={"by": "a client"}), id="v1: an unknown field"),
    pytest.param(
        v1(
            cleanPodPolicy="",
            runPolicy={"cleanPodPolicy": "", "managedBy": ""},
            worker={"restartPolicy": ""},
        ),
        id="v1: empty choices",
    ),
    pytest.param(
        v1alpha2(cleanPodPolicy="", mpiDistribution="", launcher={"restartPolicy": ""}),
        id="v1alpha2: empty choices",
    ),
    pytest.param(v1alpha1(replicas=1, processingResourceType=""), id="v1alpha1: an empty choice"),
    pytest.param(v1alpha2(mpiDistribution="IntelMPI"), id="v1alpha2: Intel MPI"),
    pytest.param(v1alpha1(gpus=4), id="v1alpha1: four GPUs"),
    pytest.param(v1alpha1(gpus=24), id="v1alpha1: GPUs of three nodes"),
    pytest.param(v1alpha1(replicas=2, runPolicy={"suspend": True}), id="v1alpha1: newer fields"),
]


@pytest.mark.parametrize("job", ACCEPTED)
async def test_valid_jobs_are_stored_as_they_are_written(
    client: HttpClient, namespace: str, request: pytest.FixtureRequest, job
):
    wanted = named(job, namespace, request)
    await client.create(resource(job), wanted)
    stored = await client.get(resource(job), wanted["metadata"]["name"], namespace)
    assert stored["spec"] == {key: each for key, each in job["spec"].items() if each is not None}


# --- jobs of other versions may be written back


@pytest.mark.parametrize("version", ["v1", "v1alpha2", "v1alpha1"])
@pytest.mark.parametrize(
    "job",
    [
        pytest.param(
            mpijob("none", runLauncherAsWorker=True, worker={"replicas": 0}), id="zero workers"
        ),
        pytest.param(without(mpijob("launcher"), f"{SPECS}.Worker"), id="no Worker"),
        pytest.param(mpijob("slots", slotsPerWorker=0), id="no slots"),
        pytest.param(
            mpijob("managed", runPolicy={"managedBy": "kubeflow.org/mpi-operator"}), id="managed"
        ),
    ],
)
async def test_what_v2beta1_accepts_can_be_changed_in_every_version(
    client: HttpClient, namespace: str, version: str, job
):
    name = f"{job['metadata']['name']}-{version}"
    job = changed(changed(job, "metadata.namespace", namespace), "metadata.name", name)
    await client.create(RESOURCES["v2beta1"], job)
    found = await client.get(RESOURCES[version], name, namespace)
    policy = found["spec"].get("runPolicy", {}) | {"suspend": True}
    await client.replace(RESOURCES[version], changed(found, "spec.runPolicy", policy))
    stored = await client.get(RESOURCES["v2beta1"], name, namespace)
    assert stored["spec"]["runPolicy"]["suspend"] is True
    assert stored["spec"]["mpiReplicaSpecs"].keys() == job["spec"]["mpiReplicaSpecs"].keys()


# --- changes


async def test_a_manager_is_immutable_in_every_version(client: HttpClient, namespace: str):
    for version in ("v1", "v1alpha2", "v1alpha1"):
        job = mpijob(f"manager-{version}", namespace)
        await client.create(RESOURCES["v2beta1"], job)
        patch = {"spec": {"runPolicy": {"managedBy": "kueue.x-k8s.io/multikueue"}}}
        with pytest.raises(errors.Invalid, match=r"managedBy.*immutable"):
            await client.patch(RESOURCES[version], f"manager-{version}", patch, namespace)


@pytest.mark.parametrize("version", RESOURCES)
async def test_no_version_scales_to_zero(client: HttpClient, namespace: str, version: str):
    name = f"zero-{version}"
    await client.create(RESOURCES["v1"], v1(name, namespace))
    zero = {"spec": {"replicas": 0}}
    with pytest.raises(errors.Invalid, match=r"at least 1 unless"):
        await client.patch(RESOURCES[version], name, zero, namespace, subresource="scale")
    assert workers(await client.get(RESOURCES[version], name, namespace)) == 2
