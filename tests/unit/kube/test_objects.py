import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_operator.kube.objects import (
    ContainerState,
    Metadata,
    Object,
    OwnerReference,
    Pod,
    Terminated,
    Waiting,
    is_newer,
)
from mpi_operator.kube.resources import Key

# As a real server writes one, with the fields that nobody here reads.
POD = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {
        "name": "pi-worker-0",
        "generateName": "pi-",
        "namespace": "team",
        "uid": "8f6e2c1a-0d55-4a8e-9a39-0f9b2f3c7f11",
        "resourceVersion": "184467440737095516160",
        "generation": 1,
        "creationTimestamp": "2026-01-02T03:04:05Z",
        "deletionTimestamp": "2026-01-02T04:04:05Z",
        "deletionGracePeriodSeconds": 30,
        "labels": {"job-role": "worker", "index": "0"},
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{...}"},
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "u1"},
            {
                "apiVersion": "kubeflow.org/v2beta1",
                "kind": "MPIJob",
                "name": "pi",
                "uid": "u2",
                "controller": True,
                "blockOwnerDeletion": True,
            },
        ],
        "finalizers": ["example.com/keep"],
        "managedFields": [{"manager": "x", "fieldsV1": {"f:metadata": {"f:labels": {".": {}}}}}],
    },
    "spec": {
        "containers": [{"name": "main", "image": "mpi", "resources": {"limits": {"cpu": "1"}}}],
        "nodeName": "node-7",
        "tolerations": [{"operator": "Exists"}],
    },
    "status": {
        "phase": "Failed",
        "conditions": [
            {"type": "Ready", "status": "False", "lastProbeTime": None, "reason": "PodFailed"},
            {"type": "PodScheduled", "status": "True", "lastProbeTime": None},
        ],
        "hostIP": "10.0.0.1",
        "podIP": "10.1.2.3",
        "podIPs": [{"ip": "10.1.2.3"}],
        "startTime": "2026-01-02T03:04:06Z",
        "initContainerStatuses": [{"name": "init", "ready": True, "restartCount": 0, "state": {}}],
        "containerStatuses": [
            {
                "name": "main",
                "state": {
                    "terminated": {
                        "exitCode": 137,
                        "signal": 9,
                        "reason": "OOMKilled",
                        "startedAt": "2026-01-02T03:04:07Z",
                    }
                },
                "lastState": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}},
                "ready": False,
                "restartCount": 3,
                "started": False,
                "image": "mpi:latest",
            }
        ],
        "qosClass": "Guaranteed",
    },
}


def decode(manifest, kind=Pod):
    return msgspec.json.decode(json.dumps(manifest).encode(), type=kind)


def test_of_a_pod_the_fields_that_are_read_are_kept():
    pod = decode(POD)
    assert pod.metadata.key == Key("team", "pi-worker-0")
    assert pod.metadata.labels == {"job-role": "worker", "index": "0"}
    assert pod.metadata.resource_version == "184467440737095516160"
    assert (pod.spec.node_name, pod.status.phase, pod.status.pod_ip) == (
        "node-7",
        "Failed",
        "10.1.2.3",
    )
    assert [condition.type for condition in pod.status.conditions] == ["Ready", "PodScheduled"]


def test_of_a_container_its_end_is_kept_and_the_one_before():
    (status,) = decode(POD).status.container_statuses
    end = Terminated(exit_code=137, signal=9, reason="OOMKilled")
    assert status.state == ContainerState(terminated=end)
    assert status.last_state == ContainerState(
        waiting=Waiting(reason="CrashLoopBackOff", message="back-off")
    )
    assert (status.name, status.ready, status.restart_count) == ("main", False, 3)


def test_the_controller_is_the_owner_that_says_so():
    assert decode(POD).metadata.controller == OwnerReference(
        api_version="kubeflow.org/v2beta1", kind="MPIJob", name="pi", uid="u2", controller=True
    )


@pytest.mark.parametrize("owners", [(), (OwnerReference(name="a"), OwnerReference(name="b"))])
def test_without_such_an_owner_there_is_no_controller(owners):
    assert Metadata(owner_references=owners).controller is None


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param({}, id="nothing at all"),
        pytest.param({"metadata": {}}, id="empty metadata"),
        pytest.param({"what": None, "metadata": {"odd": [None]}}, id="unknown fields"),
        pytest.param({"status": {"containerStatuses": [], "unknown": 1}}, id="empty lists"),
    ],
)
def test_every_field_may_be_missing(manifest):
    assert decode(manifest) == Pod()


@pytest.mark.parametrize(
    "manifest",
    [
        {"metadata": None},
        {"metadata": {"labels": None}},
        {"metadata": {"labels": {"a": 1}}},
        {"status": {"conditions": "none"}},
        {"spec": []},
        [],
        None,
    ],
    ids=json.dumps,
)
def test_what_is_of_another_type_does_not_pass(manifest):
    with pytest.raises(msgspec.ValidationError):
        decode(manifest)


def test_an_object_of_any_kind_keeps_its_metadata_only():
    assert decode(POD, Object) == Object(metadata=decode(POD).metadata)


def test_defaults_are_not_shared_where_they_could_change():
    one, other = decode({}), decode({})
    assert one.metadata.labels is not other.metadata.labels or one.metadata is other.metadata
    with pytest.raises(AttributeError):
        one.metadata.name = "x"


@given(st.integers(0, 10**30), st.integers(0, 10**30))
def test_versions_are_compared_as_numbers(one, other):
    assert is_newer(str(one), str(other)) == (one > other)


@pytest.mark.parametrize("version", ["0", "1", "18446744073709551616"])
def test_any_version_is_newer_than_none(version):
    assert is_newer(version, "")
    assert not is_newer("", version)
    assert not is_newer("", "")
