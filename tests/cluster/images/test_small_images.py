"""The images that are no part of a job's own work."""

import json
import tarfile
from typing import Any

import pytest

from devcluster import image_builds
from tests.cluster.images.manual_job import HELPLESS
from tests.support.pods import BUSYBOX, create, pod
from tests.support.waiting import block_until

LIMIT = 120_000_000  # bytes, not compressed
LOAD_ALL = """
import ctypes, pathlib, sysconfig
modules = list(pathlib.Path(sysconfig.get_path("purelib")).rglob("*.so"))
assert len(modules) > 8, modules
for each in modules:
    ctypes.CDLL(str(each))
print("loaded")
"""


def run(cluster, namespace, *, images):
    """Run a pod whose containers are these, one after the other, to its end; what it printed."""
    *first, last = [
        {"name": name, "image": image, "imagePullPolicy": "Never", "securityContext": HELPLESS}
        | {"volumeMounts": [{"name": "kube", "mountPath": "/opt/kube"}], **more}
        for name, image, more in images
    ]
    spec = {
        "restartPolicy": "Never",
        "securityContext": {"runAsUser": 65532},
        "volumes": [{"name": "kube", "emptyDir": {}}],
        "initContainers": first,
        "containers": [last],
    }
    create(
        cluster,
        namespace,
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "it"}, "spec": spec},
    )
    block_until(lambda: _phase(cluster, namespace) in ("Succeeded", "Failed"), 60)
    output = cluster.kubectl("logs", "it", "--namespace", namespace)
    assert _phase(cluster, namespace) == "Succeeded", output
    return output


def _names(archive, layer):
    with tarfile.open(fileobj=_file(archive, layer)) as files:
        return files.getnames()


def _file(archive, name):
    found = archive.extractfile(name)
    assert found, name
    return found


def _phase(cluster, namespace):
    return pod(cluster, namespace, "it")["status"].get("phase")


@pytest.mark.timeout(300)
def test_the_operator_starts_without_rights_and_without_a_place_to_write(
    cluster, namespace, loaded
):
    operator = ("main", loaded("mpi-operator"), {"args": ["--help"]})
    assert "usage: mpi-operator" in run(cluster, namespace, images=[operator])


@pytest.mark.timeout(300)
def test_the_operator_finds_the_libraries_of_its_extension_modules(cluster, namespace, loaded):
    """Without them, some packages silently fall back to slow code in Python."""
    python = ("main", loaded("mpi-operator"), {"command": ["python", "-c", LOAD_ALL]})
    assert run(cluster, namespace, images=[python]) == "loaded\n"


def test_the_operator_is_small_and_has_no_shell(loaded):
    loaded("mpi-operator")  # or this test is skipped
    with tarfile.open(image_builds.provide(["mpi-operator"])["mpi-operator"]) as archive:
        assert sum(entry.size for entry in archive) <= LIMIT
        [manifest] = json.loads(_file(archive, "manifest.json").read())
        names = {name for layer in manifest["Layers"] for name in _names(archive, layer)}
    programs = {name.rpartition("/")[2] for name in names if "/bin/" in name or "/sbin/" in name}
    assert "mpi-operator" in programs
    assert not programs & {"sh", "dash", "bash", "apt", "dpkg", "pip", "perl"}


@pytest.mark.timeout(300)
def test_kubectl_is_delivered(cluster, namespace, loaded):
    delivery = ("kubectl-delivery", loaded("kubectl-delivery"), dict[str, Any]())
    main = ("main", BUSYBOX, {"command": ["/opt/kube/kubectl", "version"]})
    assert run(cluster, namespace, images=[delivery, main]).startswith("v1.")
