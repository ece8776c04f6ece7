"""The objects of a file: what runs, what is created, what is ignored, what is refused."""

import pytest

from mpi_operator.cli.command_errors import InvalidInput
from mpi_operator.cli.job_input import file_objects
from tests.support.mpijobs import mpijob


def an(kind, name="x", **fields):
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **fields}


def sort(*values):
    return file_objects.sort([mpijob("pi"), *values], "job.yaml")


def refusal(*values):
    with pytest.raises(InvalidInput) as raised:
        sort(*values)
    return str(raised.value)


def names(found):
    return [file_objects.title(each) for each in found]


def test_config_maps_and_secrets_are_created_in_the_namespace_of_the_jobs():
    config = an("ConfigMap", data={"a": "1"})
    config["metadata"]["namespace"] = "team"
    found = sort(config, an("Secret", stringData={"b": "2"}))
    assert names(found.jobs) == ["MPIJob pi"]
    assert names(found.created) == ["ConfigMap x", "Secret x"]
    assert {each["metadata"]["namespace"] for each in found.created} == {"default"}
    assert not found.notices


def test_a_claim_is_created_and_its_storage_is_not():
    found = sort(an("PersistentVolumeClaim", "data"), an("StorageClass", "fast"))
    assert names(found.created) == ["PersistentVolumeClaim data"]
    assert found.notices == [
        "StorageClass fast: no effect on this machine, a claim is a directory here, kept between"
        " runs; --volume selects another one"
    ]


def test_a_list_counts_as_its_items():
    inner = an("ConfigMapList", items=[an("ConfigMap", "b")])
    found = sort(an("List", items=[an("ConfigMap", "a"), inner, mpijob("other")]))
    assert names(found.created) == ["ConfigMap a", "ConfigMap b"]
    assert names(found.jobs) == ["MPIJob pi", "MPIJob other"]


def test_what_has_no_effect_is_named_once_for_each_reason():
    found = sort(
        *(an("Service", "a"), an("ServiceAccount", "b"), an("NetworkPolicy", "c")),
        *(an("RoleBinding", "d"), an("Dashboard", "e"), {"kind": "LocalQueue"}),
    )
    assert found.notices == [
        "Service a, NetworkPolicy c: no effect on this machine, pods use this machine's network"
        " and find each other by host name",
        "ServiceAccount b, RoleBinding d: no effect on this machine, pods run as you",
        "Dashboard e: no effect on this machine, `mpijob run` does not use this kind",
        "LocalQueue: no effect on this machine, jobs start at once, without queues, quotas and"
        " priorities",
    ]
    assert not found.created


@pytest.mark.parametrize("kind", ["Deployment", "Pod", "Job", "PyTorchJob", "CronJob"])
def test_other_programs_are_refused_because_the_job_may_need_them(kind):
    assert refusal(an(kind, "redis")) == (
        f"cannot run {kind} redis in job.yaml: `mpijob run` runs only MPIJobs,"
        " and the job may need it. Remove it from the file, or use a cluster"
    )


@pytest.mark.parametrize(
    ("values", "message"),
    [
        pytest.param([an("MPIjob")], "unknown kind MPIjob in job.yaml: did you mean", id="case"),
        pytest.param(["text"], "not an object in job.yaml", id="no object"),
        pytest.param([{"metadata": {}}], "not an object in job.yaml", id="no kind"),
        pytest.param([an("Secret"), an("Secret")], "Secret x is in job.yaml twice", id="twice"),
        pytest.param([mpijob("pi")], "MPIJob pi is in job.yaml twice", id="a job twice"),
        pytest.param([mpijob("pi", "b")], "MPIJob pi is in job.yaml in two namespaces", id="b"),
        pytest.param([an("ConfigMap", None)], "metadata.name must be", id="no name"),
        pytest.param([an("ConfigMap", "A b")], "metadata.name must be", id="an invalid name"),
        pytest.param(
            [an("ConfigMap", data={"STEPS": 100})],
            "ConfigMap x in job.yaml: data.STEPS must be a string: put quotes around the value",
            id="a number",
        ),
        pytest.param([an("ConfigMap", data=["a"])], "data must be an object", id="a list"),
        pytest.param([an("ConfigMap", data={"a/b": ""})], "invalid key 'a/b'", id="a key"),
    ],
)
def test_objects_that_an_api_server_would_refuse(values, message):
    assert message in refusal(*values)


def test_a_secret_that_is_not_base64_is_refused_without_its_value():
    message = refusal(an("Secret", data={"token": "hunter two!"}))
    assert "data.token must be base64; use stringData for plain text" in message
    assert "hunter" not in message


def test_the_namespaces_of_the_file_are_known():
    config = an("ConfigMap", "a")
    config["metadata"]["namespace"] = "team"
    assert sort(config, an("Secret", "b")).namespaces == {"ConfigMap a": "team", "Secret b": ""}
