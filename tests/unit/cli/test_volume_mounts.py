"""Mounts of volumes that their pod does not have are errors before anything starts."""

import pytest
import yaml
from click.testing import CliRunner

from mpi_operator.api import decode_job
from mpi_operator.cli.job_input import volume_mounts
from mpi_operator.cli.main import mpijob
from tests.support.mpijobs import mpijob as job

CONTAINER = {"name": "mpi", "image": "example.com/mpi:1"}
DATA = {"name": "data", "emptyDir": {}}
LAUNCHER, WORKER = (
    f"spec.mpiReplicaSpecs[{role}].template.spec" for role in ("Launcher", "Worker")
)


def pod(*mounts, field="containers", volumes=()):
    """A role whose containers of one kind mount volumes."""
    mounting = {
        **CONTAINER,
        "volumeMounts": [{"name": name, "mountPath": f"/{name}"} for name in mounts],
    }
    spec = {"containers": [CONTAINER], "volumes": [*volumes], field: [mounting]}
    return {"template": {"spec": spec}}


def not_found(path, name):
    return f'{path}.name: Not found: "{name}": the pod has no such volume'


@pytest.mark.parametrize(
    ("roles", "expected"),
    [
        pytest.param({"worker": pod("data", volumes=[DATA])}, [], id="a volume of the pod"),
        pytest.param(
            {"worker": pod("data")},
            [not_found(f"{WORKER}.containers[0].volumeMounts[0]", "data")],
            id="no volume",
        ),
        pytest.param(
            {"launcher": pod("data", volumes=[DATA]), "worker": pod("data")},
            [not_found(f"{WORKER}.containers[0].volumeMounts[0]", "data")],
            id="a volume of the other role",
        ),
        pytest.param(
            {"launcher": pod("data", "more", volumes=[DATA], field="initContainers")},
            [not_found(f"{LAUNCHER}.initContainers[0].volumeMounts[1]", "more")],
            id="an init container",
        ),
        pytest.param(
            {"worker": pod("ssh-auth", "mpi-job-config")}, [], id="volumes that the operator adds"
        ),
    ],
)
def test_each_mount_needs_a_volume(roles, expected):
    found = volume_mounts.errors(decode_job(job("pi", **roles)))
    assert [str(each) for each in found] == expected


V1ALPHA1 = {
    "apiVersion": "kubeflow.org/v1alpha1",
    "kind": "MPIJob",
    "metadata": {"name": "pi"},
    "spec": {"replicas": 2, **pod("data")},
}


@pytest.mark.parametrize(
    ("written", "place"),
    [
        pytest.param(job("pi", worker=pod("data")), f"{WORKER}.containers[0]", id="v2beta1"),
        pytest.param(V1ALPHA1, "spec.template.spec.containers[0]", id="in terms of v1alpha1"),
    ],
)
@pytest.mark.parametrize("verb", ["run", "validate"])
def test_run_and_validate_refuse_it(tmp_path, verb, written, place):
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(written))
    done = CliRunner().invoke(mpijob, [verb, str(file)])
    assert done.exit_code == {"run": 2, "validate": 1}[verb]
    assert done.output.count(not_found(f"{place}.volumeMounts[0]", "data")) == 1
