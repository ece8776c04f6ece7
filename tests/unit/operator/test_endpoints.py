"""What the probes and Prometheus get to see, over a real connection."""

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from mpi_operator.controller.metrics import JobMetrics
from mpi_operator.operator.endpoints import application, served
from mpi_operator.operator.exit_codes import Ending, ExitCode


class Patient:
    def __init__(self):
        self.ill: list[str] = []
        self.held_up: list[str] = []

    def illnesses(self):
        return self.ill

    def obstacles(self):
        return self.held_up


@pytest.fixture
def patient():
    return Patient()


@pytest.fixture
async def url(patient):
    registry = CollectorRegistry()
    JobMetrics(registry)
    async with served(application(patient, registry), [0], "127.0.0.1") as (port,):
        yield f"http://127.0.0.1:{port}"


async def got(url, **headers):
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as answer:
        return answer.status, await answer.text(), answer.content_type


async def test_all_is_well(url):
    assert (await got(f"{url}/healthz"))[:2] == (200, "ok\n")
    assert (await got(f"{url}/readyz"))[:2] == (200, "ok\n")


async def test_what_is_wrong_is_said_line_by_line(url, patient):
    patient.held_up = ["pods: no answer", "jobs: no answer"]
    assert (await got(f"{url}/readyz"))[:2] == (503, "pods: no answer\njobs: no answer\n")
    assert (await got(f"{url}/healthz"))[0] == 200


async def test_what_cannot_recover_is_not_alive(url, patient):
    patient.ill = ["the lease thread died"]
    assert (await got(f"{url}/healthz"))[:2] == (503, "the lease thread died\n")


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        pytest.param("", "text/plain", id="whoever asks"),
        pytest.param("application/openmetrics-text", "application/openmetrics-text", id="as asked"),
    ],
)
async def test_metrics_come_in_the_format_asked_for(url, accept, kind):
    status, text, content_type = await got(f"{url}/metrics", Accept=accept)
    assert (status, content_type) == (200, kind)
    assert "mpi_operator_jobs_created_total 0.0" in text


async def test_nothing_else_is_served(url):
    assert (await got(f"{url}/"))[0] == 404


async def test_the_same_is_served_on_every_port(patient):
    async with served(application(patient, CollectorRegistry()), [0], "127.0.0.1") as (first,):
        pass
    app = application(patient, CollectorRegistry())
    async with served(app, [first, first, 0], "127.0.0.1") as ports:
        assert len(ports) == 2
        for port in ports:
            assert (await got(f"http://127.0.0.1:{port}/healthz"))[0] == 200


async def test_a_taken_port_ends_the_program_with_a_sentence(url, patient):
    port = int(url.rpartition(":")[2])
    with pytest.raises(Ending) as ending:
        async with served(application(patient, CollectorRegistry()), [port], "127.0.0.1"):
            pass
    assert ending.value.code is ExitCode.PORT_TAKEN
    assert ending.value.facts["port"] == port
