"""Launchers that ask for more ranks than their job has slots."""

import pytest

from mpi_operator.build.launcher_job import launcher_job
from tests.unit.build.jobs import NONE, environment, make_job, pods

V1 = {"mpi-operator.kubeflow.org/written-in": "v1"}
V1ALPHA2 = {"mpi-operator.kubeflow.org/written-in": "v1alpha2"}
PERMISSIONS = {"OMPI_MCA_rmaps_base_oversubscribe", "PRTE_MCA_rmaps_default_mapping_policy"}
FLYTE = ["mpirun", "-bind-to", "none", "-np", "4", "python", "entrypoint.py"]


def variables_of(launcher, annotations=V1, **spec):
    """The environment of the launcher of a job with two workers."""
    roles = {"Launcher": pods(**launcher), "Worker": {"replicas": 2, **pods()}}
    job = make_job(annotations=annotations, mpiReplicaSpecs=roles, **spec)
    return environment(launcher_job(job, NONE, suspend=False)["spec"]["template"]["spec"])


def is_permitted(launcher, annotations=V1, **spec):
    """Whether Open MPI may start them."""
    return variables_of(launcher, annotations, **spec).keys() >= PERMISSIONS


def test_open_mpi_5_fills_the_slots_of_all_workers_first():
    variables = variables_of({"args": FLYTE})
    assert variables["PRTE_MCA_rmaps_default_mapping_policy"] == "slot:oversubscribe"


@pytest.mark.parametrize(
    "launcher",
    [
        pytest.param({"args": FLYTE}, id="Flyte"),
        pytest.param({"command": ["mpirun", "-n", "3", "pi"]}, id="-n"),
        pytest.param({"command": ["mpirun"], "args": ["--np", "3", "pi"]}, id="--np"),
        pytest.param({"command": ["sh", "-c", "mpirun -np 3 pi"]}, id="a shell"),
    ],
)
def test_a_v1_job_may_run_them(launcher):
    assert is_permitted(launcher)


@pytest.mark.parametrize(
    "launcher",
    [
        pytest.param({"command": ["mpirun", "-n", "2", "pi"]}, id="as many as slots"),
        pytest.param({"command": ["mpirun", "pi"]}, id="no number"),
        pytest.param({"command": ["mpirun", "-np", "$N", "pi"]}, id="unknown"),
        pytest.param({"command": ["mpirun", "pi", "--seed", "3"]}, id="another option"),
        pytest.param({}, id="no command"),
    ],
)
def test_others_keep_the_limit_and_the_binding_of_ranks(launcher):
    assert not is_permitted(launcher)


def test_slots_and_a_launcher_that_computes_count():
    assert not is_permitted({"args": FLYTE}, slotsPerWorker=2)
    assert is_permitted({"args": FLYTE}, runLauncherAsWorker=True)
    assert not is_permitted({"args": ["mpirun", "-np", "3", "pi"]}, runLauncherAsWorker=True)


@pytest.mark.parametrize("annotations", [{}, V1ALPHA2], ids=["v2beta1", "v1alpha2"])
def test_jobs_of_other_versions_are_limited(annotations):
    assert not is_permitted({"args": FLYTE}, annotations)
