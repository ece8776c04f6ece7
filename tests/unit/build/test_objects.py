"""The objects around the pods: Service, ConfigMap, Secret, and what all of them have in common."""

from base64 import b64decode

import pytest

from mpi_operator.build import scripts
from mpi_operator.build.config_map import config_map
from mpi_operator.build.launcher_job import launcher_job
from mpi_operator.build.ownership import owner_reference
from mpi_operator.build.pod_group import pod_group
from mpi_operator.build.service import service, service_differs
from mpi_operator.build.ssh_secret import KeyPair, ssh_secret
from mpi_operator.build.worker_pod import worker_pod
from tests.unit.build.jobs import NO_SSH, NONE, UID, VOLCANO, make_job

KEYS = KeyPair(private="a private key\n", public="a public key\n")
PI = make_job()

OBJECTS = {
    "pi": service(PI),
    "pi-config": config_map(PI, [], NONE),
    "pi-ssh": ssh_secret(PI, KEYS),
    "pi-launcher": launcher_job(PI, NONE, suspend=False),
}
GROUP = pod_group(PI, VOLCANO, {}, with_launcher=True)
EVERYTHING = [*OBJECTS.items(), ("pi-worker-1", worker_pod(PI, 1, NONE)), ("pi", GROUP)]


@pytest.mark.parametrize(("name", "manifest"), EVERYTHING)
def test_every_object_has_its_name_and_its_owner(name, manifest):
    metadata = manifest["metadata"]
    assert (metadata["namespace"], metadata["name"]) == ("lab", name)
    assert metadata["ownerReferences"] == [owner_reference(PI)]


def test_a_job_is_the_only_controller_of_its_objects():
    assert owner_reference(PI) == {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "name": "pi",
        "uid": UID,
        "controller": True,
        "blockOwnerDeletion": True,
    }


@pytest.mark.parametrize("manifest", [*OBJECTS.values(), GROUP])
def test_objects_other_than_pods_have_object_labels(manifest):
    assert manifest["metadata"]["labels"] == {
        "app": "pi",
        "training.kubeflow.org/operator-name": "mpi-operator",
        "training.kubeflow.org/job-name": "pi",
    }


def test_the_service_is_headless_and_finds_all_pods():
    assert service(PI)["spec"] == {
        "clusterIP": "None",
        "selector": {
            "training.kubeflow.org/operator-name": "mpi-operator",
            "training.kubeflow.org/job-name": "pi",
        },
        "publishNotReadyAddresses": True,
    }


STORED = {
    "clusterIP": "None",
    "clusterIPs": ["None"],
    "internalTrafficPolicy": "Cluster",
    "ipFamilies": ["IPv4"],
    "publishNotReadyAddresses": True,
    "selector": service(PI)["spec"]["selector"],
    "sessionAffinity": "None",
    "type": "ClusterIP",
}

HIDDEN = {name: value for name, value in STORED.items() if name != "publishNotReadyAddresses"}


@pytest.mark.parametrize(
    ("stored", "differs"),
    [
        pytest.param(STORED, False, id="what the server filled in does not matter"),
        pytest.param({**STORED, "selector": {"app": "pi"}}, True, id="an older selector"),
        pytest.param({"clusterIP": "None"}, True, id="no selector"),
        pytest.param({**STORED, "publishNotReadyAddresses": False}, True, id="not public"),
        pytest.param(HIDDEN, True, id="not public, which the server does not write out"),
        pytest.param({**STORED, "selector": None}, True, id="a null selector"),
    ],
)
def test_when_a_stored_service_needs_an_update(stored, differs):
    assert service_differs(stored, PI) is differs


HOSTS = {
    "hostfile": "pi-worker-0.pi.lab.svc slots=1\npi-worker-1.pi.lab.svc slots=1\n",
    "discover_hosts.sh": "#!/bin/sh\necho pi-worker-1.pi.lab.svc:1\n",
}


def test_the_config_map_has_the_hosts_and_the_scripts():
    ours = {name: scripts.text(name) for name in scripts.NAMES}
    assert config_map(PI, [1], NONE)["data"] == HOSTS | ours


def test_without_ssh_there_are_no_scripts():
    assert config_map(PI, [1], NO_SSH)["data"] == HOSTS


def test_the_config_map_may_have_annotations():
    assert config_map(PI, [], NONE, {"a": "b"})["metadata"]["annotations"] == {"a": "b"}
    assert "annotations" not in config_map(PI, [], NONE)["metadata"]


def test_the_secret_has_both_keys():
    secret = ssh_secret(PI, KEYS)
    assert secret["type"] == "kubernetes.io/ssh-auth"
    assert {name: b64decode(value) for name, value in secret["data"].items()} == {
        "ssh-privatekey": b"a private key\n",
        "ssh-publickey": b"a public key\n",
    }


def test_a_private_key_does_not_get_into_a_log():
    assert "private key" not in repr(KEYS)
    assert "public key" in repr(KEYS)
