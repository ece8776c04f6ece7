"""What the endpoints answer, over a real connection."""

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from mpi_operator.controller.metrics import JobMetrics
from mpi_operator.operator.endpoints import application, served
from mpi_operator.operator.exit_codes import Exit, ExitCode


class StubHealth:
    def __init__(self):
        self.not_alive: list[str] = []
        self.not_ready: list[str] = []

    def liveness_problems(self):
        return self.not_alive

    def readiness_problems(self):
        return self.not_ready


@pytest.fixture
def health():
    return StubHealth()


@pytest.fixture
async def url(health):
    registry = CollectorRegistry()
    JobMetrics(registry)
    async with served(application(health, registry), [0], "127.0.0.1") as (port,):
        yield f"http://127.0.0.1:{port}"


async def got(url, **headers):
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as answer:
        return answer.status, await answer.text(), answer.content_type


async def test_a_healthy_process(url):
    assert (await got(f"{url}/healthz"))[:2] == (200, "ok\n")
    assert (await got(f"{url}/readyz"))[:2] == (200, "ok\n")


async def test_each_problem_is_one_line(url, health):
    health.not_ready = ["pods: no answer", "jobs: no answer"]
    assert (await got(f"{url}/readyz"))[:2] == (503, "pods: no answer\njobs: no answer\n")
    assert (await got(f"{url}/healthz"))[0] == 200


async def test_a_process_that_cannot_recover_is_not_alive(url, health):
    health.not_alive = ["the lease thread died"]
    assert (await got(f"{url}/healthz"))[:2] == (503, "the lease thread died\n")


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        pytest.param("", "text/plain", id="default"),
        pytest.param(
            "application/openmetrics-text", "application/openmetrics-text", id="OpenMetrics"
        ),
    ],
)
async def test_metrics_have_the_accepted_format(url, accept, kind):
    status, text, content_type = await got(f"{url}/metrics", Accept=accept)
    assert (status, content_type) == (200, kind)
    assert "mpi_operator_jobs_created_total 0.0" in text


async def test_nothing_else_is_served(url):
    assert (await got(f"{url}/"))[0] == 404


async def test_the_same_is_served_on_every_port(health):
    async with served(application(health, CollectorRegistry()), [0], "127.0.0.1") as (first,):
        pass
    app = application(health, CollectorRegistry())
    async with served(app, [first, first, 0], "127.0.0.1") as ports:
        assert len(ports) == 2
        for port in ports:
            assert (await got(f"http://127.0.0.1:{port}/healthz"))[0] == 200


async def test_a_port_in_use_ends_the_process(url, health):
    port = int(url.rpartition(":")[2])
    with pytest.raises(Exit) as raised:
        async with served(application(health, CollectorRegistry()), [port], "127.0.0.1"):
            pass
    assert raised.value.code is ExitCode.PORT_IN_USE
    assert raised.value.fields["port"] == port
