"""A job from a file, and what the command line changes about it."""

import pytest
import yaml

from mpi_operator.cli import job_file
from mpi_operator.cli.job_file import UnusableFile
from tests.support.mpijobs import mpijob


def text(*documents):
    return yaml.safe_dump_all(documents)


def test_the_one_job_of_a_file(tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text(text({"kind": "Service"}, mpijob("pi"), None))
    assert job_file.read(path)["metadata"]["name"] == "pi"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        pytest.param("a: [", "job.yaml: line 1, column 5: ", id="no YAML"),
        pytest.param("", "job.yaml: there is no MPIJob in it", id="nothing"),
        pytest.param("- 1", "job.yaml: there is no MPIJob in it", id="something else"),
        pytest.param(
            text(mpijob("a"), mpijob("b")),
            "job.yaml: there is more than one MPIJob in it: a, b",
            id="too many",
        ),
        pytest.param(
            text({**mpijob("a"), "apiVersion": "kubeflow.org/v9"}),
            "job.yaml: apiVersion: expected kubeflow.org/v2beta1, got 'kubeflow.org/v9'",
            id="another version",
        ),
    ],
)
def test_a_file_that_is_no_job(content, complaint):
    with pytest.raises(UnusableFile) as raised:
        job_file.parse(content, "job.yaml")
    assert complaint in str(raised.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(UnusableFile, match=r"no\.yaml: No such file or directory"):
        job_file.read(tmp_path / "no.yaml")


@pytest.mark.parametrize(
    ("setting", "path", "value"),
    [
        pytest.param("workers=4", ("mpiReplicaSpecs", "Worker", "replicas"), 4, id="workers"),
        pytest.param("slots=2", ("slotsPerWorker",), 2, id="slots"),
        pytest.param("implementation=MPICH", ("mpiImplementation",), "MPICH", id="MPI"),
        pytest.param("spec.runPolicy.suspend=true", ("runPolicy", "suspend"), True, id="a path"),
        pytest.param(
            "spec.mpiReplicaSpecs.Worker.template.spec.containers.0.image=x",
            ("mpiReplicaSpecs", "Worker", "template", "spec", "containers", 0, "image"),
            "x",
            id="an item of a list",
        ),
    ],
)
def test_settings(setting, path, value):
    job = mpijob("pi")
    found = job_file.with_settings(job, [setting])["spec"]
    for step in path:
        found = found[step]
    assert found == value
    assert job == mpijob("pi")


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        pytest.param("workers", "expected NAME=VALUE", id="no value"),
        pytest.param("wrkers=4", "there is no such field; name one of name, workers", id="a typo"),
        pytest.param("spec.slotsPerWorker.x=1", "is a value, there is nothing below it", id="deep"),
        pytest.param(
            "spec.mpiReplicaSpecs.Worker.template.spec.containers.7.image=x",
            "7 is none of the 1 items of the list",
            id="no such item",
        ),
    ],
)
def test_settings_that_cannot_be(setting, complaint):
    with pytest.raises(UnusableFile) as raised:
        job_file.with_settings(mpijob("pi", slotsPerWorker=1), [setting])
    assert complaint in str(raised.value)


def test_variables_reach_both_roles_and_replace_others_of_their_name():
    job = job_file.with_environment(mpijob("pi"), ["A=1", "B=x=y"])
    job = job_file.with_environment(job, ["A=2"])
    for role in ("Launcher", "Worker"):
        [container] = job["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]["containers"]
        assert container["env"] == [{"name": "B", "value": "x=y"}, {"name": "A", "value": "2"}]


def test_a_variable_without_a_value():
    with pytest.raises(UnusableFile, match="--env A: expected NAME=VALUE"):
        job_file.with_environment(mpijob("pi"), ["A"])
