"""The defaults of a job. Spec 6.1, with a worker count of 1 instead of 0."""

from typing import Any

import pytest

from mpi_operator.api import MPIJob, decode_job
from mpi_operator.api.types import (
    CleanPodPolicy,
    Implementation,
    LauncherCreationPolicy,
    RestartPolicy,
    RunPolicy,
)
from tests.support.mpijobs import changed, mpijob, without


def test_an_empty_job_has_the_base_defaults():
    spec = MPIJob().spec
    assert spec.slots_per_worker == 1
    assert not spec.run_launcher_as_worker
    assert spec.run_policy == RunPolicy()
    assert spec.run_policy.clean_pod_policy is CleanPodPolicy.NONE
    assert spec.ssh_auth_mount_path == "/root/.ssh"
    assert spec.mpi_implementation is Implementation.OPEN_MPI
    assert spec.launcher_creation_policy is LauncherCreationPolicy.AT_STARTUP


def test_these_fields_have_no_default():
    policy = RunPolicy()
    assert policy.ttl_seconds_after_finished is None
    assert policy.active_deadline_seconds is None
    assert policy.backoff_limit is None
    assert policy.scheduling_policy is None
    assert policy.managed_by is None


@pytest.mark.parametrize("implementation", ["Intel", "MPICH"])
def test_given_values_are_kept(implementation):
    policy = {
        "cleanPodPolicy": "Running",
        "ttlSecondsAfterFinished": 2,
        "activeDeadlineSeconds": 3,
        "backoffLimit": 4,
    }
    given: dict[str, Any] = {
        "slotsPerWorker": 10,
        "runPolicy": policy,
        "sshAuthMountPath": "/home/mpiuser/.ssh",
        "mpiImplementation": implementation,
        "launcherCreationPolicy": "WaitForWorkersReady",
    }
    spec = decode_job(mpijob(**given)).spec
    assert spec.slots_per_worker == 10
    assert spec.run_policy == RunPolicy(
        clean_pod_policy=CleanPodPolicy.RUNNING,
        ttl_seconds_after_finished=2,
        active_deadline_seconds=3,
        backoff_limit=4,
    )
    assert spec.ssh_auth_mount_path == "/home/mpiuser/.ssh"
    assert spec.mpi_implementation == implementation
    assert spec.launcher_creation_policy is LauncherCreationPolicy.WAIT_FOR_WORKERS_READY


def test_there_is_one_launcher_which_restarts_on_failure():
    launcher = decode_job(mpijob()).spec.launcher
    assert (launcher.replicas, launcher.restart_policy) == (1, RestartPolicy.ON_FAILURE)


def test_there_is_one_worker_which_never_restarts():
    worker = decode_job(without(mpijob(), "spec.mpiReplicaSpecs.Worker.replicas")).spec.worker
    assert worker
    assert (worker.replicas, worker.restart_policy) == (1, RestartPolicy.NEVER)


def test_a_job_without_a_worker_spec_has_no_workers():
    assert decode_job(without(mpijob(), "spec.mpiReplicaSpecs.Worker")).spec.worker_count == 0


@pytest.mark.parametrize(
    "path",
    [
        "spec.slotsPerWorker",
        "spec.runPolicy",
        "spec.sshAuthMountPath",
        "spec.mpiImplementation",
        "spec.launcherCreationPolicy",
        "spec.mpiReplicaSpecs.Worker.replicas",
        "spec.mpiReplicaSpecs.Worker.restartPolicy",
        "status",
    ],
)
def test_null_is_the_same_as_not_given(path):
    base = without(mpijob(), "spec.mpiReplicaSpecs.Worker.replicas")
    assert decode_job(changed(base, path, None)) == decode_job(base)


def test_an_empty_mount_path_is_the_default_one():
    assert decode_job(mpijob(sshAuthMountPath="")).spec.ssh_auth_mount_path == "/root/.ssh"
