"""What the first responses of an API server mean."""

import logging
from typing import Any

import pytest

from mpi_operator.api.crd import custom_resource_definition, v2beta1_only
from mpi_operator.controller.cached_types import MPI_JOBS
from mpi_operator.kube import config, errors
from mpi_operator.kube.client import Page
from mpi_operator.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, LEASES, PODS, Key, Resource
from mpi_operator.operator import preflight
from mpi_operator.operator.exit_codes import Exit, ExitCode
from mpi_operator.operator.health import Health
from mpi_operator.operator.preflight import Failure, fatal_exit

LOCK = Key("mpi-operator", "mpi-operator")
POD_GROUPS = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")


def api_error(kind, message="no"):
    return kind(errors.Status(message=message))


class Server:
    """A client that raises the given errors, by resource, one after another."""

    def __init__(self, **failures):
        self.failures = failures
        self.asked: list[tuple[str, str]] = []

    async def pages(self, resource, namespace="", *, limit):
        assert limit == 1
        self.asked.append((resource.plural, namespace))
        self._fail(resource.plural)
        yield Page([], "1")
        raise AssertionError("one page is enough")

    async def get(self, resource, name, namespace):
        self.asked.append((resource.plural, namespace))
        self._fail(resource.plural)
        return {}

    def _fail(self, plural):
        if found := self.failures.get(plural):
            raise found.pop(0)


class Quiet:
    is_synced = True
    problems: tuple[str, ...] = ()
    is_leader = False
    why_lost = ""


async def passed(server: Any, watched: list[tuple[Resource, str]], health: Health) -> None:
    await preflight.wait_until_allowed(server, watched, LOCK, health)


@pytest.fixture
def health():
    return Health(Quiet(), Quiet())


async def test_everything_is_read_once(health):
    server = Server()
    await passed(server, [(MPI_JOBS, "a"), (MPI_JOBS, "b"), (PODS, "a")], health)
    assert server.asked == [
        ("mpijobs", "a"),
        ("mpijobs", "b"),
        ("pods", "a"),
        ("leases", "mpi-operator"),
    ]
    assert health.readiness_problems() == []


async def test_a_missing_lease_is_no_failure(health):
    await passed(Server(leases=[api_error(errors.NotFound)]), [], health)  # raises Exit if it is
    assert health.readiness_problems() == []


async def test_all_failures_are_reported_at_once(health):
    server = Server(
        mpijobs=[api_error(errors.Forbidden, "no mpijobs")],
        leases=[api_error(errors.Forbidden, "no leases")],
    )
    with pytest.raises(Exit) as raised:
        await passed(server, [(MPI_JOBS, ""), (PODS, "")], health)
    assert raised.value.code is ExitCode.FORBIDDEN
    assert raised.value.fields["errors"] == ["no leases", "no mpijobs"]


@pytest.mark.looptime
async def test_an_unavailable_server_is_waited_for_and_logged_once(health, caplog):
    away = [errors.NotSent("connection refused") for _ in range(5)]
    server = Server(pods=[*away, errors.ConnectionLost("reset")])
    with caplog.at_level(logging.WARNING):
        await passed(server, [(PODS, "")], health)
    assert [record.error for record in caplog.records] == ["connection refused", "reset"]
    assert health.readiness_problems() == []


@pytest.mark.looptime
async def test_meanwhile_readyz_has_the_reason(health):
    seen = []

    class Watched(Server):
        async def get(self, *args):
            seen.append(health.readiness_problems())

    server = Watched(pods=[errors.NotSent("connection refused")])
    await passed(server, [(PODS, "")], health)
    assert seen[-1] == ["the API server is not available: connection refused"]


@pytest.mark.parametrize(
    ("resource", "error", "code"),
    [
        pytest.param(MPI_JOBS, api_error(errors.NotFound), ExitCode.KIND_MISSING, id="no CRD"),
        pytest.param(POD_GROUPS, api_error(errors.NotFound), ExitCode.KIND_MISSING, id="no gang"),
        pytest.param(PODS, api_error(errors.Forbidden), ExitCode.FORBIDDEN, id="forbidden"),
        pytest.param(PODS, api_error(errors.Unauthorized), ExitCode.FORBIDDEN, id="unauthorized"),
        pytest.param(
            PODS, config.ConfigError("no token"), ExitCode.BAD_CONFIGURATION, id="no credentials"
        ),
    ],
)
def test_what_only_a_person_can_fix_ends_the_process(resource, error, code):
    exit = fatal_exit([Failure(resource, error)])
    assert exit is not None
    assert exit.code is code


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
def test_what_may_pass_does_not_end_it(error):
    assert fatal_exit([Failure(PODS, error), Failure(LEASES, error)]) is None


def test_the_advice_about_a_missing_crd_is_the_command_that_installs_it():
    exit = fatal_exit([Failure(MPI_JOBS, api_error(errors.NotFound))])
    assert exit is not None
    assert exit.fields["advice"] == {
        "MPIJob": "kubectl apply -f deploy/crd/mpijobs.kubeflow.org.yaml"
    }


class CrdServer:
    """A client that has one CRD, or fails."""

    def __init__(self, crd):
        self.crd = crd

    async def get(self, resource, name):
        assert (resource, name) == (CUSTOM_RESOURCE_DEFINITIONS, "mpijobs.kubeflow.org")
        if isinstance(self.crd, Exception):
            raise self.crd
        return self.crd


def one_version():
    """The CRD of the Helm chart without webhooks."""
    crd = v2beta1_only()
    crd["spec"]["conversion"] = custom_resource_definition()["spec"]["conversion"]
    return crd


@pytest.mark.parametrize(
    ("crd", "warnings"),
    [
        pytest.param(custom_resource_definition(), 1, id="a webhook without a server"),
        pytest.param(v2beta1_only(), 0, id="no webhook"),
        pytest.param(one_version(), 0, id="a webhook and nothing to convert"),
        pytest.param({"spec": {}}, 0, id="no conversion"),
        pytest.param(api_error(errors.Forbidden), 0, id="not permitted"),
        pytest.param(errors.NotSent("connection refused"), 0, id="no API server"),
    ],
)
async def test_a_webhook_that_this_operator_does_not_serve_is_mentioned(crd, warnings, caplog):
    server: Any = CrdServer(crd)
    await preflight.warn_of_missing_webhook(server)
    assert ["v2beta1-only" in record.advice for record in caplog.records] == [True] * warnings
