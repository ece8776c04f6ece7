"""Which pods are a training-operator that runs MPIJobs, and what the operator does about one."""

import asyncio
from typing import Any, cast

import pytest

from mpi_operator.kube import errors
from mpi_operator.kube.client import Client, Listing
from mpi_operator.operator.exit_codes import Exit, ExitCode
from mpi_operator.operator.health import Health
from mpi_operator.operator.training_operator import exit_on_one, runs_mpijobs, wait_until_none

ALL = ("",)


def pod(*arguments, phase="Running", command=("/manager",), env=()):
    container = {"command": list(command), "args": list(arguments), "env": list(env)}
    return {
        "metadata": {"name": "training-operator-1"},
        "spec": {"containers": [container]},
        "status": {"phase": phase},
    }


@pytest.mark.parametrize(
    ("found", "namespaces", "runs"),
    [
        pytest.param(pod(), ALL, True, id="by default it runs every kind"),
        pytest.param(pod("--enable-scheme=pytorchjob"), ALL, False, id="only others"),
        pytest.param(pod("--enable-scheme", "tfjob"), ALL, False, id="in two words"),
        pytest.param(pod("-enable-scheme=tfjob"), ALL, False, id="with one dash"),
        pytest.param(
            pod("--enable-scheme=tfjob", "--enable-scheme=MPIJob"), ALL, True, id="MPIJobs, too"
        ),
        pytest.param(
            pod(command=["/manager", "--enable-scheme=tfjob"]), ALL, False, id="in its command"
        ),
        pytest.param(pod(phase="Pending"), ALL, True, id="it starts in a moment"),
        pytest.param(pod(phase="Failed"), ALL, False, id="it was evicted"),
        pytest.param(pod("--namespace=a"), ALL, True, id="one of all namespaces"),
        pytest.param(pod("--namespace=a"), ("a", "b"), True, id="one of ours"),
        pytest.param(pod("--namespace=a"), ("b",), False, id="another one"),
        pytest.param(
            pod(env=[{"name": "KUBEFLOW_NAMESPACE", "value": "a"}]), ("b",), False, id="a variable"
        ),
        pytest.param(pod(), ("b",), True, id="all, and ours is one of them"),
    ],
)
def test_who_runs_mpijobs(found, namespaces, runs):
    assert runs_mpijobs(found, namespaces) == runs


class Quiet:
    is_synced = True
    problems: tuple[str, ...] = ()
    is_leader = False
    why_lost = ""


class Cluster:
    """A cluster where pods of training-operator come and go."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    async def list(self, _resource, namespace, selector):
        assert namespace == "kubeflow"
        assert "training-operator" in selector.labels
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return Listing(answer, "1")

    @property
    def as_client(self) -> Client:
        return cast("Client", self)


def forbidden() -> errors.Forbidden:
    return errors.Forbidden(errors.Status(message="pods is forbidden"))


@pytest.fixture
def health():
    return Health(Quiet(), Quiet())


async def test_the_operator_waits_and_says_for_what(health, caplog):
    cluster = Cluster([pod()], [pod()], [])
    waiting = asyncio.create_task(wait_until_none(cluster.as_client, "kubeflow", ALL, health, 0.01))
    while "training-operator" not in health.waiting_for:
        await asyncio.sleep(0)
    assert "--enable-scheme" in health.waiting_for
    await waiting
    assert health.readiness_problems() == []
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    ("where", "answer"), [("", [pod()]), ("kubeflow", forbidden())], ids=["switched off", "hidden"]
)
async def test_the_operator_goes_on_where_it_may_not_look(where, answer, health):
    async with asyncio.timeout(5):
        await wait_until_none(Cluster(answer).as_client, where, ALL, health)
    assert health.readiness_problems() == []


async def test_the_operator_steps_aside_for_one_that_comes_later():
    cluster = Cluster([], errors.ConnectionLost("no answer"), [pod()])
    with pytest.raises(Exit) as raised:
        await exit_on_one(cluster.as_client, "kubeflow", ALL, 0.01)
    assert raised.value.code is ExitCode.TRAINING_OPERATOR
    assert raised.value.fields["pod"] == "kubeflow/training-operator-1"


async def test_the_operator_asks_once_where_it_may_not_look():
    cluster = Cluster([], forbidden(), [pod()])
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(2):
            await exit_on_one(cluster.as_client, "kubeflow", ALL, 0.01)
    assert cluster.answers == [[pod()]]
