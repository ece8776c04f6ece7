"""From Kubeflow's mpi-operator 0.8 to ours and back, with its own manifests, while jobs run."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from devcluster.binaries import CannotBuild
from devcluster.kubeflow import MPI_OPERATOR
from tests.cluster.operator.pi import one_rank_each
from tests.peers.adoption.switch import Jobs, Switch, waiting_job

pytestmark = pytest.mark.timeout(600)


@dataclass(frozen=True)
class Change:
    """What was seen on the way."""

    switch: Switch
    jobs: Jobs
    before: dict[str, tuple[str, int]]  # the pods, under the Go operator


@pytest.fixture(scope="module")
def change(switch: Switch) -> Iterator[Change]:
    """Our operator, in the place of the Go operator whose jobs run."""
    switch.clear()
    try:
        switch.install(MPI_OPERATOR)
    except CannotBuild as error:
        pytest.skip(str(error))
    switch.kubectl("create", "namespace", "adopted-too")
    jobs = Jobs(switch, "adopted-too", "v2beta1")
    jobs.submit(waiting_job("running", "v2beta1", workers=2, cleanPodPolicy="Running"))
    jobs.submit(waiting_job("staying", "v2beta1"))
    jobs.starts("running", 3)
    jobs.starts("staying", 2)
    before = jobs.identities()

    switch.kubectl("delete", "deployment", "mpi-operator", "-n", "mpi-operator")
    switch.ours.apply()
    yield Change(switch, jobs, before)
    switch.kubectl("delete", "namespace", "adopted-too", "--wait=false")


def test_a_job_that_runs_succeeds_with_the_pods_that_it_had(change: Change) -> None:
    jobs = change.jobs
    assert change.switch.stored_versions() == ["v2beta1"]
    jobs.release("running")
    jobs.ends("running", "Succeeded")
    for rank, pod in one_rank_each("running").items():
        assert f"rank {rank} of 2 on {pod}" in jobs.log("running")
    assert jobs.launcher_jobs() == ["running-launcher", "staying-launcher"]
    now = jobs.identities()
    assert now == {name: found for name, found in change.before.items() if name in now}


def test_it_can_come_back_while_jobs_run(change: Change) -> None:
    switch, jobs = change.switch, change.jobs
    jobs.submit(waiting_job("ours", "v2beta1"))
    jobs.starts("ours", 2)
    before = jobs.identities()

    assert "already" in switch.migrate()
    switch.remove_ours()
    switch.replace_definition(MPI_OPERATOR)
    switch.install(MPI_OPERATOR)
    for name in ("staying", "ours"):
        jobs.release(name)
        jobs.ends(name, "Succeeded")
        assert f"rank 0 of 1 on {name}-worker-0" in jobs.log(name)
    after = jobs.identities()
    assert after == {name: found for name, found in before.items() if name in after}
