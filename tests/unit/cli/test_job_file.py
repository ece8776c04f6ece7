"""A job from a file, and the changes of the command line."""

import pytest
import yaml

from mpi_operator.cli import job_file
from mpi_operator.cli.outcome import InvalidInput
from tests.support.mpijobs import mpijob


def text(*documents):
    return yaml.safe_dump_all(documents)


def test_the_one_job_of_a_file(tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text(text({"kind": "Service"}, mpijob("pi"), None))
    assert job_file.load(path, [], []).job.metadata.name == "pi"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param("a: [", "cannot parse job.yaml:1:5: ", id="no YAML"),
        pytest.param("", "no MPIJob in job.yaml: ", id="empty"),
        pytest.param("- 1", "no MPIJob in job.yaml: ", id="something else"),
        pytest.param(
            text(mpijob("a"), mpijob("b")),
            "more than one MPIJob in job.yaml: a, b",
            id="too many",
        ),
    ],
)
def test_a_file_without_a_valid_job(content, message):
    with pytest.raises(InvalidInput) as raised:
        job_file.parse(content, "job.yaml")
    assert message in str(raised.value)


def test_a_missing_file(tmp_path):
    with pytest.raises(InvalidInput, match=r"cannot read .*no\.yaml: No such file or directory"):
        job_file.load(tmp_path / "no.yaml", [], [])


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
    ("setting", "message"),
    [
        pytest.param("workers", "expected NAME=VALUE", id="no value"),
        pytest.param("wrkers=4", "unknown field; use name, workers, ", id="a typo"),
        pytest.param(
            "spec.slotsPerWorker.x=1", "slotsPerWorker is a value and has no fields", id="deep"
        ),
        pytest.param(
            "spec.mpiReplicaSpecs.Worker.template.spec.containers.7.image=x",
            "7 is not an index of a list of length 1",
            id="no such item",
        ),
    ],
)
def test_invalid_settings(setting, message):
    with pytest.raises(InvalidInput) as raised:
        job_file.with_settings(mpijob("pi", slotsPerWorker=1), [setting])
    assert message in str(raised.value)


def test_variables_reach_both_roles_and_replace_others_of_their_name():
    job = job_file.with_environment(mpijob("pi"), ["A=1", "B=x=y"])
    job = job_file.with_environment(job, ["A=2"])
    for role in ("Launcher", "Worker"):
        [container] = job["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]["containers"]
        assert container["env"] == [{"name": "B", "value": "x=y"}, {"name": "A", "value": "2"}]


def test_a_variable_without_a_value():
    with pytest.raises(InvalidInput, match="invalid --env A: expected NAME=VALUE"):
        job_file.with_environment(mpijob("pi"), ["A"])
