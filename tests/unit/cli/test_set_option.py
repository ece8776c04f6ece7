"""`--set`: which fields it sets, and what it refuses."""

import pytest

from mpi_operator.cli.command_errors import InvalidInput
from mpi_operator.cli.job_input.set_option import with_settings
from tests.support.mpijobs import mpijob

CONTAINER = "spec.mpiReplicaSpecs.Worker.template.spec.containers"
TO_CONTAINER = ("mpiReplicaSpecs", "Worker", "template", "spec", "containers", 0)


@pytest.mark.parametrize(
    ("setting", "path", "value"),
    [
        pytest.param("workers=4", ("mpiReplicaSpecs", "Worker", "replicas"), 4, id="workers"),
        pytest.param("slots=2", ("slotsPerWorker",), 2, id="slots"),
        pytest.param("implementation=MPICH", ("mpiImplementation",), "MPICH", id="MPI"),
        pytest.param("spec.runPolicy.suspend=true", ("runPolicy", "suspend"), True, id="a path"),
        pytest.param(f"{CONTAINER}.0.image=x", (*TO_CONTAINER, "image"), "x", id="a dotted item"),
        pytest.param(f"{CONTAINER}[0].image=x", (*TO_CONTAINER, "image"), "x", id="an item"),
        pytest.param(
            "spec.mpiReplicaSpecs[Worker].replicas=3",
            ("mpiReplicaSpecs", "Worker", "replicas"),
            3,
            id="as messages write it",
        ),
        pytest.param(
            f"{CONTAINER}[0].resources.limits[nvidia.com/gpu]=2",
            (*TO_CONTAINER, "resources", "limits", "nvidia.com/gpu"),
            2,
            id="a key with dots",
        ),
        pytest.param(f"{CONTAINER}[0].image=5", (*TO_CONTAINER, "image"), "5", id="a text"),
        pytest.param("slots=null", ("slotsPerWorker",), None, id="unset"),
        pytest.param(f'{CONTAINER}[0].image=""', (*TO_CONTAINER, "image"), "", id="empty text"),
        pytest.param(
            f"{CONTAINER}[0].command=[a, b]", (*TO_CONTAINER, "command"), ["a", "b"], id="a list"
        ),
    ],
)
def test_settings(setting, path, value):
    job = mpijob("pi")
    found = with_settings(job, [setting])["spec"]
    for step in path:
        found = found[step]
    assert found == value
    assert job == mpijob("pi")


def test_labels_and_annotations_are_texts():
    settings = ["metadata.annotations[example.com/steps]=5", "metadata.labels.team=red"]
    metadata = with_settings(mpijob("pi"), settings)["metadata"]
    assert metadata["annotations"] == {"example.com/steps": "5"}
    assert metadata["labels"] == {"team": "red"}


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        pytest.param("workers", "expected NAME=VALUE", id="no value"),
        pytest.param("workers=", "the value is empty; use null to unset", id="an empty value"),
        pytest.param("workers=[", "the value is not valid YAML", id="no YAML"),
        pytest.param("wrkers=4", "unknown field; use name, workers, ", id="a typo"),
        pytest.param("spec=4", "unknown field; use name, workers, ", id="the whole spec"),
        pytest.param("status.x=4", "unknown field; use name, workers, ", id="the status"),
        pytest.param("spec..slots=4", "unknown field; use name, workers, ", id="two dots"),
        pytest.param("spec.a[0=4", "unknown field; use name, workers, ", id="half a bracket"),
        pytest.param(
            "spec.slotPerWorker=4",
            "unknown field spec.slotPerWorker; did you mean slotsPerWorker?",
            id="a path that does not exist",
        ),
        pytest.param(
            "spec.runPolicy.nonsense.deep=4", "unknown field spec.runPolicy.nonsense", id="deeper"
        ),
        pytest.param(
            "spec.mpiReplicaSpecs.worker.replicas=4",
            "unknown field spec.mpiReplicaSpecs.worker; did you mean Worker?",
            id="a role that does not exist",
        ),
        pytest.param(
            f"{CONTAINER}[0].imag=x",
            f"unknown field {CONTAINER}[0].imag; did you mean image?",
            id="a field of a container",
        ),
        pytest.param("metadata.naem=x", "unknown field metadata.naem; did you mean name?", id="m"),
        pytest.param(
            "spec.slotsPerWorker.x=1",
            "spec.slotsPerWorker is not an object and has no fields",
            id="deep",
        ),
        pytest.param(
            f"{CONTAINER}[7].image=x",
            f"{CONTAINER} has 1 item, counted from 0; no [7]",
            id="no such item",
        ),
        pytest.param(
            f"{CONTAINER}[0].env[0].value=x",
            f"{CONTAINER}[0].env has 0 items, counted from 0; no [0]",
            id="no list",
        ),
    ],
)
def test_invalid_settings(setting, message):
    with pytest.raises(InvalidInput) as raised:
        with_settings(mpijob("pi", slotsPerWorker=1), [setting])
    assert f"invalid --set {setting}: " in str(raised.value)
    assert message in str(raised.value)


@pytest.mark.parametrize("version", ["v1", "v1alpha2"])
def test_an_older_version_has_fields_of_its_own(version):
    job = mpijob("pi") | {"apiVersion": f"kubeflow.org/{version}"}
    assert with_settings(job, ["spec.mainContainer=mpi"])["spec"]["mainContainer"] == "mpi"
    with pytest.raises(InvalidInput, match=r"unknown field spec\.nonsense"):
        with_settings(job, ["spec.nonsense=mpi"])


def test_metadata_that_is_no_object_has_no_fields():
    with pytest.raises(InvalidInput, match="metadata is not an object and has no fields"):
        with_settings(mpijob("pi") | {"metadata": "pi"}, ["name=e"])
