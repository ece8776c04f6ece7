"""What becomes of a job: upstream's end-to-end cases, with real pods."""

from mpi_operator.kube.resources import JOBS, PODS, SECRETS
from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import OPEN_MPI, Overrides, one_rank_each, pi, pi_as_user


async def test_a_command_that_cannot_work_fails_and_says_why(lab: Lab) -> None:
    # Open MPI refuses to run as root without a flag.
    launcher = {"command": ["mpirun", "-n", "2", "/home/mpiuser/pi"]}
    await lab.submit(pi(overrides=Overrides(launcher=launcher), runPolicy={"backoffLimit": 1}))

    failed = await lab.fails("pi")

    assert failed["reason"].startswith("BackoffLimitExceeded")
    assert "root" in failed["message"]


async def test_a_job_that_begins_suspended_has_no_pods_until_it_is_resumed(lab: Lab) -> None:
    await lab.submit(pi(runPolicy={"suspend": True}))
    await lab.becomes("pi", "Suspended")
    assert await lab.pods("pi") == []

    await lab.suspend("pi", False)

    await lab.succeeds("pi")
    assert await lab.ranks("pi") == one_rank_each("pi")


async def test_a_running_job_is_suspended_and_resumed(lab: Lab) -> None:
    await lab.submit(pi(overrides=_sleeping("600")))
    await lab.runs("pi")

    await lab.suspend("pi")
    await lab.becomes("pi", "Suspended")
    await lab.eventually("pi", lambda: _has_no_pods(lab, "pi"))

    await lab.suspend("pi", False)
    await lab.runs("pi")


async def test_a_job_that_another_controller_manages_is_not_changed(lab: Lab) -> None:
    await lab.submit(pi_as_user("foreign", runPolicy={"managedBy": "kueue.x-k8s.io/multikueue"}))
    # One that is ours comes after it and is done: the operator has seen both.
    await lab.submit(pi_as_user("ours", runPolicy={"managedBy": "kubeflow.org/mpi-operator"}))
    await lab.succeeds("ours")
    assert await lab.ranks("ours") == one_rank_each("ours")

    assert "conditions" not in await lab.status("foreign")
    assert await lab.find(JOBS, "foreign-launcher") is None
    assert await lab.find(SECRETS, "foreign-ssh") is None
    assert await lab.pods("foreign") == []


def _sleeping(seconds: str) -> Overrides:
    return Overrides(launcher={"command": [*OPEN_MPI.command("sleep"), seconds]})


async def _has_no_pods(lab: Lab, name: str) -> bool:
    listing = await lab.client.list(PODS, lab.namespace)
    return not [pod for pod in listing.items if pod["metadata"]["name"].startswith(name)]
