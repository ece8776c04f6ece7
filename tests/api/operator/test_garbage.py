"""Whatever a stored job contains, the operator says what is wrong with it and serves the others.

The API server here has a definition without any rules, as after an upgrade from one that had none.
"""

import asyncio
import functools
import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from devcluster.control_plane import ControlPlane
from mpi_operator.api.crd import v2beta1_only
from mpi_operator.kube import errors
from mpi_operator.kube.config.tls import ssl_context
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, EVENTS, JOBS, Manifest
from tests.api.conftest import started_control_plane
from tests.support import garbage
from tests.support.audited import new_namespace
from tests.support.jobs import Jobs
from tests.support.mirror import Mirror, mirrored
from tests.support.mpijobs import MPIJOBS, mpijob
from tests.support.operator import Operator, operator
from tests.support.waiting import until

_UNDECODABLE = "informer_undecodable_objects_total{"


@pytest.fixture(scope="module")
def lawless_control_plane() -> Iterator[ControlPlane]:
    with started_control_plane(controller_manager=True) as control_plane:
        yield control_plane


@pytest.fixture
async def lawless(
    lawless_control_plane: ControlPlane, tmp_path: Path
) -> AsyncIterator[tuple[Jobs, Operator]]:
    """A namespace of a server that takes everything for a job, and its operator."""
    admin, name = lawless_control_plane.kubeconfig(), f"garbage-{secrets.token_hex(3)}"
    async with (
        new_namespace(lawless_control_plane, name, _install_without_rules) as jobs,
        operator(jobs.client, admin, name, tmp_path) as process,
    ):
        yield jobs, process


async def _install_without_rules(client: HttpClient) -> None:
    """Also where another test has installed some."""
    definition = v2beta1_only()
    [version] = definition["spec"]["versions"]
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version["schema"] = {"openAPIV3Schema": anything}
    version["subresources"] = {"status": {}}
    version.pop("additionalPrinterColumns")
    await client.apply(CUSTOM_RESOURCE_DEFINITIONS, definition, manager="tests", force=True)
    await _becomes(client, lawless=True)


async def _takes_anything(client: HttpClient) -> bool | None:
    """Whether a job that makes no sense is taken; None while the server is changing its mind."""
    try:
        await client.create(MPIJOBS, {**mpijob("probe"), "spec": 0})
    except (errors.NotFound, errors.Unavailable):
        return None
    except (errors.Invalid, errors.BadRequest):
        return False
    await client.delete(MPIJOBS, "probe", "default")
    return True


async def _becomes(client: HttpClient, *, lawless: bool) -> None:
    async def is_so() -> bool:
        return await _takes_anything(client) is lawless

    await until(is_so)


async def _store(jobs: Jobs, job: Manifest, name: str) -> None:
    """Store a job with a status."""
    job = {**job, "metadata": {**job["metadata"], "name": name}}
    while True:
        stored = await jobs.submit(job)
        if not job.get("status"):
            return
        try:
            await jobs.client.replace(
                MPIJOBS, {**stored, "status": job["status"]}, subresource="status"
            )
            return
        except errors.Conflict:  # the operator was faster
            await jobs.client.delete(MPIJOBS, name, jobs.namespace)


def _has_answer(mirror: Mirror, namespace: str, name: str) -> bool:
    """Whether a job has an answer that a user can find: a condition, a launcher or an event."""
    status = (mirror.get(MPIJOBS, name, namespace) or {}).get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    listed = conditions if isinstance(conditions, list) else []
    kinds = {str(each.get("type")) for each in listed if isinstance(each, dict)}
    return (
        bool(kinds & {"Running", "Failed", "Suspended", "Succeeded"})
        or mirror.get(JOBS, f"{name}-launcher", namespace) is not None
        or any(each["involvedObject"]["name"] == name for each in mirror.all(EVENTS, namespace))
    )


async def _assert_healthy(process: Operator) -> None:
    """The operator runs, logged no error and could decode every object."""
    assert not process.has_ended, process.last_words
    assert [each for each in process.records() if each["level"] == "error"] == []
    assert "Traceback" not in process.log.read_text()
    _, metrics = await process.get("/metrics")
    undecodable = [each for each in metrics.splitlines() if each.startswith(_UNDECODABLE)]
    assert undecodable, metrics
    assert all(each.endswith(" 0.0") for each in undecodable), undecodable


async def _all_answered(jobs: Jobs, names: list[str]) -> None:
    # A mirror, for to ask the server about so many again and again would keep it from answering.
    kinds = (MPIJOBS, JOBS, EVENTS)
    async with mirrored(jobs.client, *kinds, namespace=jobs.namespace) as mirror:
        for name in names:
            try:
                has_answer = functools.partial(_has_answer, mirror, jobs.namespace, name)
                await mirror.until(has_answer, jobs.namespace, 30)
            except TimeoutError:
                raise AssertionError(f"no answer to {await jobs.job(name)}") from None


@pytest.mark.timeout(240)
async def test_of_anything_that_is_stored_as_a_job_the_operator_says_what_is_wrong(
    lawless: tuple[Jobs, Operator],
) -> None:
    made = await asyncio.to_thread(garbage.examples, garbage.jobs(), 150)
    made = [job for job in made if not _is_managed_by_others(job)]
    odd = {name: mpijob() for name in ("a" * 253, "a.b.c", "0", "9-lives", "x" * 60)}
    named = {f"job-{number}": job for number, job in enumerate(made)} | odd
    jobs, process = lawless
    await jobs.submit(mpijob("good-before"))
    await asyncio.gather(*(_store(jobs, job, name) for name, job in named.items()))
    await jobs.submit(mpijob("good-after"))
    for name in ("good-before", "good-after"):
        await jobs.start(name, workers=2)
    await _all_answered(jobs, list(named))
    await _assert_healthy(process)


def _is_managed_by_others(job: Manifest) -> bool:
    """Then nothing about it is ours to say."""
    policy = job["spec"].get("runPolicy") if isinstance(job["spec"], dict) else None
    return isinstance(policy, dict) and bool(policy.get("managedBy"))


@pytest.mark.timeout(240)
async def test_a_job_with_only_a_wrong_status_continues(
    lawless: tuple[Jobs, Operator],
) -> None:
    statuses: list[Any] = [
        {"conditions": "many"},
        {"conditions": [{"type": "Created", "status": "Maybe"}]},
        {"conditions": [None, 5, {"type": None}]},
        {"replicaStatuses": {"Worker": {"active": -1}}},
        {"replicaStatuses": [1, 2]},
        {"startTime": "yesterday", "completionTime": 5},
        {"observedGeneration": "new", "selector": {}},
        "a status",
        [],
        {"conditions": [{"type": "Created", "status": "True"}] * 2},
    ]
    names = [f"job-{number}" for number in range(len(statuses))]
    jobs, process = lawless
    await process.stop()  # so that it finds them as they are
    for name, status in zip(names, statuses, strict=True):
        await _store(jobs, garbage.healthy_with_status(status), name)
    await process.start()
    await process.leading()
    stuck = [name for name in names if not await _starts(jobs, name)]
    assert stuck == [], [(await jobs.job(name))["status"] for name in stuck]
    await _assert_healthy(process)


async def _starts(jobs: Jobs, name: str) -> bool:
    try:
        await until(lambda: jobs.has_workers(name, 2), 10)
    except TimeoutError:
        return False
    return True


@pytest.mark.timeout(240)
async def test_jobs_that_today_s_rules_would_refuse_do_not_stop_the_others(
    lawless: tuple[Jobs, Operator],
) -> None:
    """Stored without rules, found under the rules of today: even a status may be refused."""
    made = await asyncio.to_thread(garbage.examples, garbage.jobs(), 60)
    named = {f"job-{n}": job for n, job in enumerate(made) if not _is_managed_by_others(job)}
    jobs, process = lawless
    await process.stop()
    await asyncio.gather(*(_store(jobs, job, name) for name, job in named.items()))
    await jobs.client.apply(
        CUSTOM_RESOURCE_DEFINITIONS,
        v2beta1_only(),
        manager="tests",
        force=True,
    )
    await _becomes(jobs.client, lawless=False)
    await process.start()
    await process.leading()
    await jobs.submit(mpijob("good"))
    await jobs.start("good", workers=2)
    await _all_answered(jobs, list(named))
    await _assert_healthy(process)


@pytest.mark.timeout(120)
async def test_a_job_as_deep_as_a_well_is_answered(
    lawless: tuple[Jobs, Operator],
) -> None:
    depths = (100, 900, 3000)
    jobs, process = lawless
    for depth in depths:
        await _store_deep(jobs, depth)
    await jobs.submit(mpijob("good"))
    await jobs.start("good", workers=2)
    await until(lambda: _have_events(jobs, [f"deep-{depth}" for depth in depths]))
    await _assert_healthy(process)


async def _have_events(jobs: Jobs, names: list[str]) -> bool:
    return all([await jobs.has_event(name, "ValidationError") for name in names])


async def _store_deep(jobs: Jobs, depth: int) -> None:
    """By hand, for what is that deep no library here can write."""
    nested = '{"a":' * depth + "1" + "}" * depth
    metadata = f'{{"name":"deep-{depth}"}}'
    body = (
        f'{{"apiVersion":"kubeflow.org/v2beta1","kind":"MPIJob","metadata":{metadata},'
        f'"spec":{{"x":{nested}}}}}'
    )
    client = jobs.client
    credential = await client.config.credentials.current()
    url = f"{client.config.server}/apis/kubeflow.org/v2beta1/namespaces/{jobs.namespace}/mpijobs"
    context = ssl_context(client.config.tls, credential.certificate)
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            url, data=body, headers={"Content-Type": "application/json"}, ssl=context
        ) as answer,
    ):
        assert answer.status == 201, await answer.text()
