"""What follows from the version that a job was written in, and from its annotations."""

import pytest

from mpi_operator.api import decode_job, labels, warnings
from mpi_operator.api.field_errors import InvalidJob
from mpi_operator.api.labels import Role
from mpi_operator.api.main_container import chosen_container, main_container
from mpi_operator.api.profiles import PROFILES, profile
from tests.support.mpijobs import mpijob

PREFIX = "mpi-operator.kubeflow.org/"
SIDECAR, MPI = (
    {"name": "proxy", "image": "example.com/proxy:1"},
    {"name": "mpi", "image": "example.com/mpi:1"},
)


def annotated(*, launcher=None, worker=None, replicas=2, **annotations):
    """A job with annotations, given without their prefix and with `_` for `-`."""
    manifest = mpijob("pi", "lab", launcher=launcher, worker={**(worker or {})})
    manifest["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = replicas
    manifest["metadata"]["annotations"] = {
        PREFIX + name.replace("_", "-"): value for name, value in annotations.items()
    }
    return manifest


def two_containers():
    return {"template": {"spec": {"containers": [SIDECAR, MPI]}}}


@pytest.mark.parametrize(
    ("annotations", "version"),
    [
        pytest.param({}, "v2beta1", id="without the annotation"),
        pytest.param({"written_in": "v1"}, "v1", id="v1"),
        pytest.param({"written_in": "v1alpha2"}, "v1alpha2", id="v1alpha2"),
        pytest.param({"written_in": "v1alpha1"}, "v1alpha1", id="v1alpha1"),
        pytest.param({"written_in": "v3"}, "v2beta1", id="an unknown version"),
    ],
)
def test_the_profile_of_a_job(annotations, version):
    assert profile(decode_job(annotated(**annotations))).version == version


@pytest.mark.parametrize(
    ("version", "role"),
    [("v2beta1", "launcher"), ("v1", "master"), ("v1alpha2", "launcher"), ("v1alpha1", "launcher")],
)
def test_the_role_label_of_a_launcher(version, role):
    usual = labels.launcher_labels(decode_job(annotated()))
    found = labels.launcher_labels(decode_job(annotated(written_in=version)))
    assert found == usual | {labels.JOB_ROLE: role}


@pytest.mark.parametrize("version", PROFILES)
def test_the_labels_of_workers_are_the_same_in_every_version(version):
    job = decode_job(annotated(written_in=version))
    assert labels.worker_labels(job, 0) == labels.worker_labels(decode_job(annotated()), 0)


@pytest.mark.parametrize("version", PROFILES)
def test_pods_of_every_version_have_a_role_and_are_selected_by_it(version):
    job = decode_job(annotated(written_in=version))
    for role, found in (
        (Role.LAUNCHER, labels.launcher_labels(job)),
        (Role.WORKER, labels.worker_labels(job, 0)),
    ):
        assert labels.role_of(found) is role
        assert labels.role_selector(job, role).items() <= found.items()


@pytest.mark.parametrize("given", [{}, {labels.JOB_ROLE: "chief"}], ids=["no label", "unknown"])
def test_a_pod_without_a_role(given):
    assert labels.role_of(given) is None


@pytest.mark.parametrize(
    ("annotations", "main", "chosen"),
    [
        pytest.param({}, "proxy", "", id="the first, unless another one is named"),
        pytest.param({"main_container": "mpi"}, "mpi", "mpi", id="the one that is named"),
        pytest.param({"main_container": "gone"}, "proxy", "", id="the first if it does not exist"),
        pytest.param({"main_container": ""}, "proxy", "", id="an empty name names none"),
    ],
)
def test_the_main_container(annotations, main, chosen):
    job = decode_job(annotated(launcher=two_containers(), **annotations))
    assert main_container(job, job.spec.launcher)["name"] == main
    assert chosen_container(job, job.spec.launcher) == chosen


@pytest.mark.parametrize(
    ("annotations", "messages"),
    [
        pytest.param({"main_container": "mpi"}, [], id="both roles have the container"),
        pytest.param(
            {"main_container": "proxy"},
            ['Worker has no container "proxy", so its first one is used'],
            id="only one role has the container",
        ),
        pytest.param({"launcher_restart_policy": "ExitCode"}, [], id="launcher: ExitCode"),
        pytest.param(
            {"launcher_restart_policy": "Always"},
            ['ignored: must be "ExitCode", got "Always"'],
            id="launcher: a Job cannot do that",
        ),
        pytest.param({"worker_restart_policy": "ExitCode"}, [], id="worker: ExitCode"),
        pytest.param({"worker_restart_policy": "Always"}, [], id="worker: Always"),
        pytest.param(
            {"worker_restart_policy": "exitcode"},
            ['ignored: must be "Always" or "ExitCode", got "exitcode"'],
            id="worker: spelled wrongly",
        ),
    ],
)
def test_warnings_about_annotations(annotations, messages):
    job = annotated(launcher=two_containers(), **annotations)
    assert [each.message for each in warnings(job)] == messages


WHY = "gpus must be a multiple of gpusPerNode"


@pytest.mark.parametrize("more", [{}, {"runLauncherAsWorker": True}], ids=["plain", "as worker"])
def test_a_job_that_cannot_be_converted_says_why(more):
    job = annotated(replicas=0, conversion_error=WHY)
    job["spec"] |= more
    with pytest.raises(InvalidJob) as invalid:
        decode_job(job)
    assert str(invalid.value) == f"spec: {WHY}"


def test_a_job_that_was_repaired_runs():
    assert decode_job(annotated(replicas=1, conversion_error=WHY)).spec.worker_count == 1


def test_without_that_annotation_a_job_needs_workers():
    with pytest.raises(InvalidJob, match="must be at least 1"):
        decode_job(annotated(replicas=0))
