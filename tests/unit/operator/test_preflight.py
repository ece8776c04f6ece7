"""What the first answers of an API server mean."""

import logging
from typing import Any

import pytest

from mpi_operator.controller.cached_types import MPI_JOBS
from mpi_operator.kube import config, errors
from mpi_operator.kube.client import Page
from mpi_operator.kube.resources import LEASES, PODS, Key, Resource
from mpi_operator.operator import preflight
from mpi_operator.operator.exit_codes import Ending, ExitCode
from mpi_operator.operator.health import Health
from mpi_operator.operator.preflight import Refusal, verdict

LOCK = Key("mpi-operator", "mpi-operator")
POD_GROUPS = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")


def api_error(kind, message="no"):
    return kind(errors.Status(message=message))


class Server:
    """As much of a client as is asked; `answers` says what it refuses, and how often."""

    def __init__(self, **refusals):
        self.refusals = refusals
        self.asked: list[tuple[str, str]] = []

    async def pages(self, resource, namespace="", *, limit):
        assert limit == 1
        self.asked.append((resource.plural, namespace))
        self._refuse(resource.plural)
        yield Page([], "1", is_last=False)
        raise AssertionError("one page is enough")

    async def get(self, resource, name, namespace):
        self.asked.append((resource.plural, namespace))
        self._refuse(resource.plural)
        return {}

    def _refuse(self, plural):
        if found := self.refusals.get(plural):
            raise found.pop(0)


class Quiet:
    is_synced = True
    problems: tuple[str, ...] = ()
    is_leader = False
    why_lost = ""


async def passed(server: Any, watched: list[tuple[Resource, str]], health: Health) -> None:
    await preflight.passed(server, watched, LOCK, health)


@pytest.fixture
def health():
    return Health(Quiet(), Quiet())


async def test_everything_is_asked_for_once(health):
    server = Server()
    await passed(server, [(MPI_JOBS, "a"), (MPI_JOBS, "b"), (PODS, "a")], health)
    assert server.asked == [
        ("mpijobs", "a"),
        ("mpijobs", "b"),
        ("pods", "a"),
        ("leases", "mpi-operator"),
    ]
    assert health.obstacles() == []


async def test_a_lease_that_nobody_has_made_yet_is_no_trouble(health):
    await passed(Server(leases=[api_error(errors.NotFound)]), [], health)


async def test_all_refusals_are_told_at_once(health):
    server = Server(
        mpijobs=[api_error(errors.Forbidden, "no mpijobs")],
        leases=[api_error(errors.Forbidden, "no leases")],
    )
    with pytest.raises(Ending) as ending:
        await passed(server, [(MPI_JOBS, ""), (PODS, "")], health)
    assert ending.value.code is ExitCode.NOT_ALLOWED
    assert ending.value.facts["refusals"] == ["no leases", "no mpijobs"]


@pytest.mark.looptime
async def test_a_server_that_is_away_is_waited_for_and_told_of_once(health, caplog):
    away = [errors.NotSent("connection refused") for _ in range(5)]
    server = Server(pods=[*away, errors.ConnectionLost("reset")])
    with caplog.at_level(logging.WARNING):
        await passed(server, [(PODS, "")], health)
    assert [record.error for record in caplog.records] == ["connection refused", "reset"]
    assert health.obstacles() == []


@pytest.mark.looptime
async def test_while_it_is_away_the_reason_can_be_seen(health):
    seen = []

    class Watched(Server):
        async def get(self, *args):
            seen.append(health.obstacles())

    server = Watched(pods=[errors.NotSent("connection refused")])
    await passed(server, [(PODS, "")], health)
    assert seen[-1] == ["the API server cannot be asked: connection refused"]


@pytest.mark.parametrize(
    ("resource", "error", "code"),
    [
        pytest.param(MPI_JOBS, api_error(errors.NotFound), ExitCode.KIND_MISSING, id="no CRD"),
        pytest.param(POD_GROUPS, api_error(errors.NotFound), ExitCode.KIND_MISSING, id="no gang"),
        pytest.param(PODS, api_error(errors.Forbidden), ExitCode.NOT_ALLOWED, id="not allowed"),
        pytest.param(PODS, api_error(errors.Unauthorized), ExitCode.NOT_ALLOWED, id="unknown"),
        pytest.param(
            PODS, config.ConfigError("no token"), ExitCode.BAD_CONFIGURATION, id="no credentials"
        ),
    ],
)
def test_what_only_a_person_can_mend_ends_the_program(resource, error, code):
    ending = verdict([Refusal(resource, error)])
    assert ending is not None
    assert ending.code is code


@pytest.mark.parametrize(
    "error",
    [
        errors.NotSent("refused"),
        errors.Untrusted("the handshake broke off"),
        errors.DeadlineExceeded("slow"),
        errors.Undecodable("a page of a proxy"),
        api_error(errors.Unavailable),
        api_error(errors.TooManyRequests),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_may_pass_does_not(error):
    assert verdict([Refusal(PODS, error), Refusal(LEASES, error)]) is None


def test_a_missing_crd_is_told_with_the_command_that_installs_it():
    ending = verdict([Refusal(MPI_JOBS, api_error(errors.NotFound))])
    assert ending is not None
    assert ending.facts["advice"] == {
        "MPIJob": "kubectl apply -f deploy/crds/mpijobs.kubeflow.org.yaml"
    }
