"""Which jobs cannot run, and what their authors are told. Spec 6.2, and then some."""

from typing import Any

import pytest

from mpi_operator.api import InvalidJob, decode_job
from tests.support.mpijobs import changed, mpijob, template, without

LAUNCHER = "spec.mpiReplicaSpecs.Launcher"
WORKER = "spec.mpiReplicaSpecs.Worker"


def complaints(manifest: Any) -> list[str]:
    try:
        decode_job(manifest)
    except InvalidJob as invalid:
        return list(map(str, invalid.errors))
    return []


def paths(manifest: Any) -> list[str]:
    return [complaint.split(": ")[0] for complaint in complaints(manifest)]


@pytest.mark.parametrize("implementation", ["OpenMPI", "Intel", "MPICH"])
@pytest.mark.parametrize(
    "base",
    [
        pytest.param(mpijob(), id="with workers"),
        pytest.param(without(mpijob(), WORKER), id="without workers"),
    ],
)
def test_a_valid_job(base, implementation):
    assert complaints(changed(base, "spec.mpiImplementation", implementation)) == []


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
            id="a role that nobody knows",
        ),
        pytest.param(changed(mpijob(), "spec.colour", "red"), id="a field that nobody knows"),
        pytest.param(
            mpijob(worker={"template": template(dnsPolicy="")}), id="an empty choice in a template"
        ),
    ],
)
def test_also_valid(manifest):
    assert complaints(manifest) == []


def test_an_empty_manifest():
    assert complaints({}) == ["spec: is required", "metadata.name: is required"]


def test_an_empty_spec():
    manifest = {"metadata": {"name": "pi"}, "spec": {}}
    assert complaints(manifest) == ["spec.mpiReplicaSpecs: is required"]


def test_no_roles():
    manifest = mpijob(mpiReplicaSpecs={})
    assert complaints(manifest) == ["spec.mpiReplicaSpecs[Launcher]: is required"]


def test_empty_roles():
    manifest = mpijob(mpiReplicaSpecs={"Launcher": {"replicas": 1, "template": {}}, "Worker": {}})
    assert complaints(manifest) == [
        "spec.mpiReplicaSpecs[Launcher]: is required",
        "spec.mpiReplicaSpecs[Worker].template.spec.containers: at least one container is required",
    ]


def test_everything_wrong_is_told_at_once():
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
    assert complaints(manifest) == [
        "spec.mpiReplicaSpecs[Launcher].restartPolicy: "
        'must be one of Never, OnFailure; got "Always"',
        "spec.mpiReplicaSpecs[Worker].restartPolicy: "
        'must be one of Never, OnFailure; got "Invalid"',
        "spec.mpiReplicaSpecs[Launcher].replicas: must be 1, got 2",
        "spec.mpiReplicaSpecs[Worker].replicas: must be at least 1, got 0 "
        "(0 is allowed with runLauncherAsWorker)",
    ]


@pytest.mark.parametrize("name", ["1-foo", "foo-", "Foo", "a.b", "a_b", "-a", "ä"])
def test_a_name_that_is_no_host_name(name):
    (complaint,) = complaints(mpijob(name))
    assert complaint.startswith("metadata.name: becomes part of host names, so it must consist of")
    assert complaint.endswith(f'got "{name}"')


@pytest.mark.parametrize(
    ("name", "workers"),
    [
        pytest.param("a" * 55, 1, id="even for the first worker"),
        pytest.param("a" * 54, 11, id="for the eleventh worker"),
    ],
)
def test_a_name_that_is_too_long(name, workers):
    (complaint,) = complaints(mpijob(name, worker={"replicas": workers}))
    assert complaint == (
        f"metadata.name: is too long: the last worker would be called {name}-worker-{workers - 1}, "
        "which has 64 characters of at most 63"
    )


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        ("spec", [], "spec: must be an object, got a list"),
        ("spec", 5, "spec: must be an object, got 5"),
        (LAUNCHER, "me", 'spec.mpiReplicaSpecs[Launcher]: must be an object, got "me"'),
        (
            f"{WORKER}.replicas",
            "two",
            'spec.mpiReplicaSpecs[Worker].replicas: must be an integer, got "two"',
        ),
        (
            f"{WORKER}.replicas",
            2_000_000_000,
            "spec.mpiReplicaSpecs[Worker].replicas: must be at most 20000, got 2000000000",
        ),
        ("spec.slotsPerWorker", 1.5, "spec.slotsPerWorker: must be an integer, got 1.5"),
        ("spec.slotsPerWorker", True, "spec.slotsPerWorker: must be an integer, got true"),
        (
            "spec.slotsPerWorker",
            2**31,
            "spec.slotsPerWorker: must be at most 2147483647, got 2147483648",
        ),
        (
            "spec.runPolicy",
            {"activeDeadlineSeconds": 10**30},
            "spec.runPolicy.activeDeadlineSeconds: "
            "must be at most 9223372036854775807, got a huge number",
        ),
        (
            "spec.runPolicy",
            {"schedulingPolicy": {"minAvailable": -(2**31) - 1}},
            "spec.runPolicy.schedulingPolicy.minAvailable: "
            "must be at least -2147483648, got -2147483649",
        ),
        (
            "spec.runPolicy",
            {"suspend": "yes"},
            'spec.runPolicy.suspend: must be true or false, got "yes"',
        ),
        (
            "spec.runPolicy",
            {"schedulingPolicy": {"minResources": {"cpu": "lots"}}},
            "spec.runPolicy.schedulingPolicy.minResources[cpu]: "
            'must be a quantity such as 500m or 2Gi, got "lots"',
        ),
        (
            "spec.runPolicy",
            {"schedulingPolicy": {"minResources": {"cpu": 0.5}}},
            "spec.runPolicy.schedulingPolicy.minResources[cpu]: "
            "must be an integer or a string, got 0.5",
        ),
        (
            f"{WORKER}.template",
            "pod.yaml",
            'spec.mpiReplicaSpecs[Worker].template: must be an object, got "pod.yaml"',
        ),
        (
            f"{WORKER}.template.spec.containers",
            {"name": "mpi"},
            "spec.mpiReplicaSpecs[Worker].template.spec.containers: must be a list, got an object",
        ),
        (
            f"{WORKER}.template.spec.containers.0",
            None,
            "spec.mpiReplicaSpecs[Worker].template.spec.containers[0]: must be an object, got null",
        ),
        (
            f"{WORKER}.template.spec.containers.0",
            {"image": "example.com/mpi:1"},
            "spec.mpiReplicaSpecs[Worker].template.spec.containers[0].name: is required",
        ),
        (
            f"{WORKER}.template.spec.containers.0.env",
            [{"name": "N", "value": 5}],
            "spec.mpiReplicaSpecs[Worker].template.spec.containers[0].env[0].value: "
            "must be a string, got 5",
        ),
        (
            f"{WORKER}.template.spec.containers.0.ports",
            [{"containerPort": 22}, {"containerPort": 22, "protocol": "TCP"}],
            "spec.mpiReplicaSpecs[Worker].template.spec.containers[0].ports[1]: "
            'there is another one with containerPort 22, protocol "TCP"',
        ),
        (
            f"{WORKER}.template.spec.dnsPolicy",
            "Maybe",
            "spec.mpiReplicaSpecs[Worker].template.spec.dnsPolicy: must be one of ClusterFirst, "
            'ClusterFirstWithHostNet, Default, None; got "Maybe"',
        ),
        ("metadata.labels", {"a": 1}, "metadata.labels[a]: must be a string, got 1"),
        ("kind", "TFJob", 'kind: must be one of MPIJob; got "TFJob"'),
        (
            "apiVersion",
            "kubeflow.org/v1",
            'apiVersion: must be one of kubeflow.org/v2beta1; got "kubeflow.org/v1"',
        ),
        (
            "status",
            {"startTime": "yesterday"},
            'status.startTime: must be a time such as 2026-01-31T12:00:00Z, got "yesterday"',
        ),
        (
            "status",
            {"conditions": [{"status": "True"}]},
            "status.conditions[0].type: is required",
        ),
    ],
)
def test_a_field_of_the_wrong_kind(path, value, complaint):
    assert complaints(changed(mpijob(), path, value)) == [complaint]


@pytest.mark.parametrize("garbage", [None, [], "job", 5, True])
def test_a_manifest_that_is_none(garbage):
    (complaint,) = complaints(garbage)
    assert complaint.startswith("the job: must be an object, got ")


def test_wrong_types_and_broken_rules_are_told_together():
    manifest = mpijob("1pi", launcher={"replicas": 2}, slotsPerWorker="many")
    assert paths(manifest) == [
        "spec.slotsPerWorker",
        "metadata.name",
        "spec.mpiReplicaSpecs[Launcher].replicas",
    ]


def test_what_follows_from_a_wrong_type_is_not_told_again():
    manifest = mpijob(worker={"template": {"spec": {"containers": 5}}})
    assert paths(manifest) == ["spec.mpiReplicaSpecs[Worker].template.spec.containers"]


def test_keys_that_are_no_strings():
    manifest = mpijob(worker={"template": template(nodeSelector={True: "yes"})})
    assert complaints(manifest) == [
        "spec.mpiReplicaSpecs[Worker].template.spec.nodeSelector[True]: keys must be strings"
    ]


def test_long_values_are_cut():
    (complaint,) = complaints(mpijob(slotsPerWorker="x" * 10_000))
    assert complaint == f'spec.slotsPerWorker: must be an integer, got "{"x" * 39}…"'


def test_all_complaints_are_in_the_message():
    with pytest.raises(InvalidJob, match=r"^kind: .*; metadata.name: becomes .*"):
        decode_job(mpijob("1pi") | {"kind": "Job"})
