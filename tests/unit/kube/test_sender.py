"""What is tried again, when, with which credentials, and how long each try may take."""

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from mpi_operator.kube import errors, requests
from mpi_operator.kube.config import Credential
from mpi_operator.kube.config.config import FixedCredentials
from mpi_operator.kube.metrics import Metrics
from mpi_operator.kube.resources import PODS
from mpi_operator.kube.sender import Sender
from mpi_operator.kube.transport import Timeouts

pytestmark = pytest.mark.looptime

READ = requests.get(PODS, "x", "team", "")
WRITE = requests.create(PODS, {"metadata": {"name": "x", "namespace": "team"}})
TIMEOUTS = Timeouts(read=15, write=40, deadline=60)


@pytest.fixture(autouse=True)
def no_jitter(monkeypatch):
    monkeypatch.setattr("mpi_operator.kube.sender.random.random", lambda: 0.0)


def now():
    return asyncio.get_running_loop().time()


def api_error(code, retry_after=None):
    return errors.from_status(errors.Status(code=code), retry_after=retry_after)


def credential_of(name):
    return Credential((("Authorization", name),))


class Wire:
    """Answers each try with the next of the answers, and writes down when it came and how."""

    def __init__(self, *answers, takes=0.0):
        self.answers, self.takes = list(answers), takes
        self.times, self.limits, self.shown = [], [], []

    async def __call__(self, credential, limit):
        self.times.append(now())
        self.limits.append(limit)
        self.shown.append(dict(credential.headers).get("Authorization"))
        await asyncio.sleep(min(self.takes, limit))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return 200, answer


class Renewed:
    """Credentials that are new after each refusal, as often as there are new ones."""

    def __init__(self, *names, takes=0.0):
        self.names, self.takes = list(names), takes
        self.refusals = []

    async def current(self):
        await asyncio.sleep(self.takes)
        return credential_of(self.names[0])

    async def refused(self, credential):
        self.refusals.append(credential)
        if len(self.names) > 1:
            self.names.pop(0)
        return credential != credential_of(self.names[0])


class Lease:
    """A fence that lasts until a moment."""

    def __init__(self, until):
        self.until, self.doubts = until, 0

    def remaining(self):
        if now() >= self.until:
            raise errors.NotLeader("over")
        return self.until - now()

    def doubt(self):
        self.doubts += 1


def make_sender(credentials=None, fence=None, registry=None, slots=64):
    return Sender(
        credentials or FixedCredentials(credential_of("me")),
        TIMEOUTS,
        Metrics(registry or CollectorRegistry()),
        slots=asyncio.Semaphore(slots),
        fence=fence,
        clock=now,
    )


@pytest.mark.parametrize("request_", [READ, WRITE], ids=["read", "write"])
@pytest.mark.parametrize(
    ("error", "times"),
    [
        pytest.param(api_error(429), [0, 0.1], id="refused for now"),
        pytest.param(api_error(429, 7), [0, 7], id="refused for a while"),
        pytest.param(errors.NotSent("refused"), [0, 0.1], id="not sent"),
    ],
)
async def test_what_did_nothing_is_tried_again(request_, error, times):
    wire = Wire(error, "done")
    assert await make_sender().send(request_, wire) == "done"
    assert wire.times == pytest.approx(times)


@pytest.mark.parametrize(
    "error",
    [api_error(500), api_error(503), errors.ConnectionLost("cut"), errors.DeadlineExceeded("late")],
    ids=repr,
)
async def test_what_may_have_happened_is_tried_again_for_reads_only(error):
    assert await make_sender().send(READ, Wire(error, "done")) == "done"
    wire = Wire(error, "done")
    with pytest.raises(type(error)):
        await make_sender().send(WRITE, wire)
    assert len(wire.times) == 1


@pytest.mark.parametrize("seconds", [60, 61, 1e300, float("inf")])
async def test_a_wait_beyond_the_deadline_rises_at_once(seconds):
    with pytest.raises(errors.TooManyRequests):
        await make_sender().send(READ, Wire(api_error(429, seconds)))
    assert now() == 0


async def test_tries_end_with_the_deadline():
    wire = Wire(errors.NotSent("refused"))
    with pytest.raises(errors.NotSent):
        await make_sender().send(WRITE, wire)
    assert 50 < now() < 60
    assert len(wire.times) < 25


@pytest.mark.parametrize("seconds", [0, -1, -1e9])
async def test_a_server_that_asks_for_no_time_at_all_is_not_flooded(seconds):
    wire = Wire(api_error(429, seconds))
    with pytest.raises(errors.TooManyRequests):
        await make_sender().send(READ, wire)
    assert len(wire.times) < 25


@pytest.mark.parametrize(("request_", "limit"), [(READ, 15), (WRITE, 40)], ids=["read", "write"])
async def test_each_try_has_its_own_time_and_none_more_than_is_left(request_, limit):
    wire = Wire(errors.NotSent("refused"), takes=14)
    with pytest.raises(errors.NotSent):
        await make_sender().send(request_, wire)
    left = [60 - time for time in wire.times]
    assert wire.limits == pytest.approx([min(limit, each) for each in left])
    assert now() <= 60


@pytest.mark.parametrize("request_", [READ, WRITE], ids=["read", "write"])
async def test_credentials_that_take_too_long_leave_no_time_to_send(request_):
    wire = Wire("done")
    with pytest.raises(errors.NotSent, match="no time left to send it"):
        await make_sender(Renewed("me", takes=61)).send(request_, wire)
    assert wire.times == []


async def test_a_login_is_no_part_of_the_deadline():
    class LogsInOnce(Renewed):
        async def current(self):
            held = await super().current()
            self.takes = 0.0
            return held

    wire = Wire("done")
    assert await make_sender(LogsInOnce("me", takes=61)).send(WRITE, wire) == "done"


# --- 401


async def test_after_a_401_newer_credentials_are_tried_once():
    credentials, wire = Renewed("old", "new"), Wire(api_error(401), "done")
    assert await make_sender(credentials).send(WRITE, wire) == "done"
    assert wire.shown == ["old", "new"]
    assert credentials.refusals == [credential_of("old")]


async def test_a_second_refusal_rises():
    wire = Wire(api_error(401))
    with pytest.raises(errors.Unauthorized):
        await make_sender(Renewed("a", "b", "c")).send(READ, wire)
    assert wire.shown == ["a", "b"]


async def test_without_newer_credentials_a_401_is_raised():
    wire = Wire(api_error(401))
    with pytest.raises(errors.Unauthorized):
        await make_sender(FixedCredentials(credential_of("me"))).send(READ, wire)
    assert wire.shown == ["me"]


async def test_newer_credentials_are_tried_also_when_the_401_is_not_the_first_error():
    wire = Wire(errors.NotSent("refused"), api_error(401), api_error(429), "done")
    assert await make_sender(Renewed("old", "new")).send(WRITE, wire) == "done"
    assert wire.shown == ["old", "old", "new", "new"]


# --- the fence


async def test_a_write_has_no_more_time_than_the_fence():
    wire = Wire("done")
    await make_sender(fence=Lease(7.5)).send(WRITE, wire)
    assert wire.limits == [7.5]


async def test_a_fence_that_lasts_longer_changes_nothing():
    wire = Wire("done")
    await make_sender(fence=Lease(1000)).send(WRITE, wire)
    assert wire.limits == [40]


async def test_behind_a_fence_nothing_is_written():
    wire = Wire("done")
    with pytest.raises(errors.NotLeader):
        await make_sender(fence=Lease(0)).send(WRITE, wire)
    assert wire.times == []


async def test_the_fence_is_asked_before_every_try():
    wire = Wire(api_error(429, 10), "done")
    with pytest.raises(errors.NotLeader):
        await make_sender(fence=Lease(5)).send(WRITE, wire)
    assert wire.times == [0]


async def test_reads_pass_the_fence():
    wire = Wire("done")
    await make_sender(fence=Lease(0)).send(READ, wire)
    assert wire.limits == [15]


@pytest.mark.parametrize(
    ("request_", "answer", "doubts"),
    [
        pytest.param(WRITE, errors.ConnectionLost("cut"), 1, id="a write that got lost"),
        pytest.param(WRITE, errors.DeadlineExceeded("late"), 1, id="an abandoned write"),
        pytest.param(WRITE, api_error(504), 1, id="a write that timed out on the server"),
        pytest.param(WRITE, api_error(409), 0, id="a write that was refused"),
        pytest.param(WRITE, errors.Untrusted("who?"), 0, id="a write that never left"),
        pytest.param(READ, api_error(404), 0, id="a read"),
    ],
)
async def test_the_fence_learns_of_writes_that_may_still_land(request_, answer, doubts):
    fence = Lease(30)
    with pytest.raises(type(answer)):
        await make_sender(fence=fence).send(request_, Wire(answer))
    assert fence.doubts == doubts


async def test_the_fence_learns_of_a_cancelled_write():
    fence = Lease(30)
    writing = asyncio.ensure_future(make_sender(fence=fence).send(WRITE, Wire("done", takes=5)))
    await asyncio.sleep(1)
    writing.cancel()
    await asyncio.wait([writing])
    assert fence.doubts == 1


async def test_a_fence_is_put_on_a_copy():
    sender = make_sender()
    fenced = sender.fenced_by(Lease(0))
    assert await sender.send(WRITE, Wire("done")) == "done"
    with pytest.raises(errors.NotLeader):
        await fenced.send(WRITE, Wire("done"))


# --- metrics


async def test_answers_and_tries_are_counted():
    registry = CollectorRegistry()
    wire = Wire(errors.NotSent("refused"), api_error(429), "done")
    await make_sender(registry=registry).send(WRITE, wire)
    labels = {"verb": "create", "resource": "pods"}
    codes = {
        code: registry.get_sample_value("rest_client_requests_total", labels | {"code": code})
        for code in ("<error>", "429", "200", "500")
    }
    assert codes == {"<error>": 1, "429": 1, "200": 1, "500": None}
    assert registry.get_sample_value("rest_client_request_duration_seconds_count", labels) == 3
    for reason in ("NotSent", "TooManyRequests"):
        retried = registry.get_sample_value(
            "rest_client_request_retries_total", labels | {"reason": reason}
        )
        assert retried == 1


async def test_what_the_fence_stopped_is_no_request():
    registry = CollectorRegistry()
    with pytest.raises(errors.NotLeader):
        await make_sender(fence=Lease(0), registry=registry).send(WRITE, Wire("done"))
    labels = {"verb": "create", "resource": "pods", "code": "<error>"}
    assert registry.get_sample_value("rest_client_requests_total", labels) is None


async def test_only_so_many_are_sent_at_once():
    sender, wire = make_sender(slots=2), Wire("done", takes=10)
    await asyncio.gather(*(sender.send(WRITE, wire) for _ in range(6)))
    assert wire.times == [0, 0, 10, 10, 20, 20]


async def test_one_that_is_cancelled_makes_room_for_the_next():
    sender, wire = make_sender(slots=1), Wire("done", takes=10)
    first, second, third = (asyncio.create_task(sender.send(WRITE, wire)) for _ in range(3))
    await asyncio.sleep(1)
    second.cancel()
    first.cancel()
    assert await third == "done"
    assert wire.times == [0, 1]


async def test_cancelling_a_wait_ends_it():
    sending = asyncio.create_task(make_sender().send(READ, Wire(api_error(429, 50))))
    await asyncio.sleep(1)
    sending.cancel()
    await asyncio.wait([sending])
    assert sending.cancelled()
    assert now() == 1
