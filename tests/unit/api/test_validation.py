"""Which jobs are invalid, and the field errors that their authors get. Spec 6.2 and more."""

import re
from typing import Any

import pytest

from mpi_operator.api import InvalidJob, decode_job
from tests.support.mpijobs import changed, mpijob, template, without

LAUNCHER = "spec.mpiReplicaSpecs.Launcher"
WORKER = "spec.mpiReplicaSpecs.Worker"


def errors(manifest: Any) -> list[str]:
    try:
        decode_job(manifest)
    except InvalidJob as invalid:
        return list(map(str, invalid.errors))
    return []


def paths(manifest: Any) -> list[str]:
    return [error.split(": ")[0] for error in errors(manifest)]


@pytest.mark.parametrize("implementation", ["OpenMPI", "Intel", "MPICH"])
@pytest.mark.parametrize(
    "base",
    [
        pytest.param(mpijob(), id="with workers"),
        pytest.param(without(mpijob(), WORKER), id="without workers"),
    ],
)
def test_a_valid_job(base, implementation):
    assert errors(changed(base, "spec.mpiImplementation", implementation)) == []


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(mpijob("a" * 54), id="the longest name"),
        pytest.param(mpijob("a" * 53, worker={"replicas": 100}), id="the longest name with 99"),
        pytest.param(
            mpijob(runLauncherAsWorker=True, worker={"replicas": 0}),
            id="no workers, because the launcher is one",
        ),
        pytest.param(mpijob(slotsPerWorker=0), id="no slots"),
        pytest.param(
            mpijob(runPolicy={"managedBy": "kueue.x-k8s.io/multikueue"}), id="managed by Kueue"
        ),
        pytest.param(mpijob(runPolicy={"schedulingPolicy": {}}), id="an empty policy"),
        pytest.param(
            mpijob(runPolicy={"schedulingPolicy": {"minResources": {"cpu": 2, "memory": "1Gi"}}}),
            id="quantities as numbers and strings",
        ),
        pytest.param(
            changed(mpijob(), "spec.mpiReplicaSpecs.Boss", {"replicas": 3}),
            id="a role that is unknown",
        ),
        pytest.param(changed(mpijob(), "spec.colour", "red"), id="a field that is unknown"),
        pytest.param(
            mpijob(worker={"template": template(dnsPolicy="")}), id="an empty choice in a template"
        ),
    ],
)
def test_also_valid(manifest):
    assert errors(manifest) == []


def test_an_empty_manifest():
    assert errors({}) == ["spec: Required value", "metadata.name: Required value"]


def test_an_empty_spec():
    manifest = {"metadata": {"name": "pi"}, "spec": {}}
    assert errors(manifest) == ["spec.mpiReplicaSpecs: Required value"]


def test_no_roles():
    manifest = mpijob(mpiReplicaSpecs={})
    assert errors(manifest) == [
        "spec.mpiReplicaSpecs[Launcher]: Required value: a job needs a Launcher"
    ]


def test_empty_roles():
    manifest = mpijob(mpiReplicaSpecs={"Launcher": {"replicas": 1, "template": {}}, "Worker": {}})
    assert errors(manifest) == [
        "spec.mpiReplicaSpecs[Launcher]: Required value: a job needs a Launcher",
        "spec.mpiReplicaSpecs[Worker].template.spec.containers: "
        "Required value: at least one container is required",
    ]


def test_all_errors_are_reported_at_once():
    policy = {
        "cleanPodPolicy": "unknown",
        "ttlSecondsAfterFinished": -1,
        "activeDeadlineSeconds": -1,
        "backoffLimit": -1,
        "managedBy": "other",
    }
    manifest = mpijob(
        "this-name-is-waaaaaaaay-too-long-for-a-worker-hostname",
        worker={"replicas": 1000},
        slotsPerWorker=-1,
        runPolicy=policy,
        mpiImplementation="Unknown",
    )
    assert sorted(paths(manifest)) == [
        "metadata.name",
        "spec.mpiImplementation",
        "spec.runPolicy.activeDeadlineSeconds",
        "spec.runPolicy.backoffLimit",
        "spec.runPolicy.cleanPodPolicy",
        "spec.runPolicy.managedBy",
        "spec.runPolicy.ttlSecondsAfterFinished",
        "spec.slotsPerWorker",
    ]


def test_wrong_roles():
    manifest = mpijob(
        launcher={"replicas": 2, "restartPolicy": "Always"},
        worker={"replicas": 0, "restartPolicy": "Invalid"},
    )
    assert errors(manifest) == [
        "spec.mpiReplicaSpecs[Launcher].restartPolicy: "
        'Unsupported value: "Always": supported values: "Never", "OnFailure"',
        "spec.mpiReplicaSpecs[Worker].restartPolicy: "
        'Unsupported value: "Invalid": supported values: "Never", "OnFailure"',
        "spec.mpiReplicaSpecs[Launcher].replicas: Invalid value: 2: must be 1",
        "spec.mpiReplicaSpecs[Worker].replicas: "
        "Invalid value: 0: must be at least 1 unless runLauncherAsWorker is true",
    ]


@pytest.mark.parametrize("name", ["1-foo", "foo-", "Foo", "a.b", "a_b", "-a", "ä"])
def test_a_name_that_is_no_host_name(name):
    (error,) = errors(mpijob(name))
    assert error == (
        f'metadata.name: Invalid value: "{name}": must consist of lower-case letters, digits and '
        "'-', start with a letter and not end with '-', because it becomes part of host names"
    )


@pytest.mark.parametrize(
    ("name", "workers"),
    [
        pytest.param("a" * 55, 1, id="even for the first worker"),
        pytest.param("a" * 54, 11, id="for the eleventh worker"),
    ],
)
def test_a_name_that_is_too_long(name, workers):
    (error,) = errors(mpijob(name, worker={"replicas": workers}))
    assert error == (
        f'metadata.name: Invalid value: "{name[:39]}…": too long: the last worker would be named '
        f"{name}-worker-{workers - 1}, which has 64 characters; the maximum is 63"
    )


@pytest.mark.parametrize(
    ("path", "value", "error"),
    [
        ("spec", [], "spec: Invalid value: array: must be an object"),
        ("spec", 5, "spec: Invalid value: 5: must be an object"),
        (LAUNCHER, "me", 'spec.mpiReplicaSpecs[Launcher]: Invalid value: "me": must be an object'),
        (
            f"{WORKER}.replicas",
            "two",
            'spec.mpiReplicaSpecs[Worker].replicas: Invalid value: "two": must be an integer',
        ),
        (
            f"{WORKER}.replicas",
            2_000_000_000,
            "spec.mpiReplicaSpecs[Worker].replicas: "
            "Invalid value: 2000000000: must be less than or equal to 20000",
        ),
        ("spec.slotsPerWorker", 1.5, "spec.slotsPerWorker: Invalid value: 1.5: must be an integer"),
        (
            "spec.slotsPerWorker",
            True,
            "spec.slotsPerWorker: Invalid value: true: must be an integer",
        ),
        (
            "spec.slotsPerWorker",
            2**31,
            "spec.slotsPerWorker: "
            "Invalid value: 2147483648: must be less than or equal to 2147483647",
        ),
        (
            "spec.runPolicy",
            {"activeDeadlineSeconds": 10**30},
            "spec.runPolicy.activeDeadlineSeconds: "
            "Invalid value: a huge number: must be less than or equal to 9223372036854775807",
        ),
        (
            "spec.runPolicy",
            {"schedulingPolicy": {"minAvailable": -(2**31) - 1}},
            "spec.runPolicy.schedulingPolicy.minAvailable: "
            "Invalid value: -2147483649: must be greater than or equal to -2147483648",
        ),
        (
            "spec.runPolicy",
            {"suspend": "yes"},
            'spec.runPolicy.suspend: Invalid value: "yes": must be true or false',
        ),
        (
            "spec.runPolicy",
            {"schedulingPolicy": {"minResources": {"cpu": "lots"}}},
            "spec.runPolicy.schedulingPolicy.minResources[cpu]: "
            'Invalid value: "lots": must be a quantity such as 500m or 2Gi',
        ),
        (
            "spec.runPolicy",
            {"schedulingPolicy": {"minResources": {"cpu": 0.5}}},
            "spec.runPolicy.schedulingPolicy.minResources[cpu]: "
            "Invalid value: 0.5: must be an integer or a string",
        ),
        (
            f"{WORKER}.template",
            "pod.yaml",
            'spec.mpiReplicaSpecs[Worker].template: Invalid value: "pod.yaml": must be an object',
        ),
        (
            f"{WORKER}.template.spec.containers",
            {"name": "mpi"},
            "spec.mpiReplicaSpecs[Worker].template.spec.containers: "
            "Invalid value: object: must be an array",
        ),
        (
            f"{WORKER}.template.spec.containers.0",
            None,
            "spec.mpiReplicaSpecs[Worker].template.spec.containers[0]: "
            "Invalid value: null: must be an object",
        ),
        (
            f"{WORKER}.template.spec.containers.0",
            {"image": "example.com/mpi:1"},
            "spec.mpiReplicaSpecs[Worker].template.spec.containers[0].name: Required value",
        ),
        (
            f"{WORKER}.template.spec.containers.0.env",
            [{"name": "N", "value": 5}],
            "spec.mpiReplicaSpecs[Worker].template.spec.containers[0].env[0].value: "
            "Invalid value: 5: must be a string",
        ),
        (
            f"{WORKER}.template.spec.containers.0.ports",
            [{"containerPort": 22}, {"containerPort": 22, "protocol": "TCP"}],
            "spec.mpiReplicaSpecs[Worker].template.spec.containers[0].ports[1]: "
            'Duplicate value: containerPort 22, protocol "TCP"',
        ),
        (
            f"{WORKER}.template.spec.dnsPolicy",
            "Maybe",
            "spec.mpiReplicaSpecs[Worker].template.spec.dnsPolicy: "
            'Unsupported value: "Maybe": supported values: "ClusterFirst", '
            '"ClusterFirstWithHostNet", "Default", "None"',
        ),
        ("metadata.labels", {"a": 1}, "metadata.labels[a]: Invalid value: 1: must be a string"),
        ("kind", "TFJob", 'kind: Unsupported value: "TFJob": supported values: "MPIJob"'),
        (
            "apiVersion",
            "kubeflow.org/v1",
            'apiVersion: Unsupported value: "kubeflow.org/v1": '
            'supported values: "kubeflow.org/v2beta1"',
        ),
        (
            "status",
            {"startTime": "yesterday"},
            "status.startTime: "
            'Invalid value: "yesterday": must be a time such as 2026-01-31T12:00:00Z',
        ),
        (
            "status",
            {"conditions": [{"status": "True"}]},
            "status.conditions[0].type: Required value",
        ),
    ],
)
def test_a_field_of_the_wrong_kind(path, value, error):
    assert errors(changed(mpijob(), path, value)) == [error]


@pytest.mark.parametrize("garbage", [None, [], "job", 5, True])
def test_a_manifest_that_is_not_an_object(garbage):
    (error,) = errors(garbage)
    assert re.fullmatch("the job: Invalid value: .*: must be an object", error)


def test_wrong_types_and_broken_rules_are_reported_together():
    manifest = mpijob("1pi", launcher={"replicas": 2}, slotsPerWorker="many")
    assert paths(manifest) == [
        "spec.slotsPerWorker",
        "metadata.name",
        "spec.mpiReplicaSpecs[Launcher].replicas",
    ]


def test_what_follows_from_a_wrong_type_is_not_reported_again():
    manifest = mpijob(worker={"template": {"spec": {"containers": 5}}})
    assert paths(manifest) == ["spec.mpiReplicaSpecs[Worker].template.spec.containers"]


def test_keys_that_are_no_strings():
    manifest = mpijob(worker={"template": template(nodeSelector={True: "yes"})})
    assert errors(manifest) == [
        "spec.mpiReplicaSpecs[Worker].template.spec.nodeSelector[True]: keys must be strings"
    ]


def test_long_values_are_truncated():
    (error,) = errors(mpijob(slotsPerWorker="x" * 10_000))
    assert error == f'spec.slotsPerWorker: Invalid value: "{"x" * 39}…": must be an integer'


def test_all_errors_are_in_the_message():
    with pytest.raises(InvalidJob, match=r"^kind: .*; metadata.name: .*"):
        decode_job(mpijob("1pi") | {"kind": "Job"})
