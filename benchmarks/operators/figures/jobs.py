"""Many small jobs from submission to success, on a fake node: speed and cost."""

import asyncio
import time

from benchmarks.goal import at_least, at_most
from benchmarks.operators import baseline
from benchmarks.operators.comparison import Comparison, against
from benchmarks.operators.conditions import submit_until, until_jobs
from benchmarks.operators.figures.figure import Figure
from benchmarks.operators.jobs import job
from benchmarks.operators.kwok import fake_node
from benchmarks.operators.quiet import seconds_until_quiet
from benchmarks.operators.requests import beyond_objects
from benchmarks.operators.samples import Sample, Samples
from benchmarks.operators.scale import Scale
from benchmarks.operators.subjects import OURS, TUNED, Subject, turns
from benchmarks.operators.testbed import Testbed
from benchmarks.progress import rounds, say
from devcluster.audit import Record, counted
from devcluster.control_plane import CONTROLLER_MANAGER
from mpi_operator.kube.resources import JOBS, Manifest

WORKERS = 2
_SLOWEST = 0.5  # jobs per second
_REST_SECONDS = 60.0


def case(jobs: int) -> str:
    return f"{jobs} jobs"


async def measure(testbed: Testbed, scale: Scale) -> list[Sample]:
    """All subjects in turns, with the same fake node."""
    samples = []
    # A new API server grows its caches under load, and ends watches for that.
    say("jobs: warm-up")
    async with fake_node(testbed, launchers_end=True):
        await _one(testbed, TUNED, scale.jobs, number=-1)
    for number in rounds(min(scale.rounds, 3), scale.minutes):
        for subject in turns((OURS, TUNED, None), number):
            async with fake_node(testbed, launchers_end=True):
                if subject is None:
                    samples.append(await _alone(testbed, scale.jobs, number))
                else:
                    samples.append(await _one(testbed, subject, scale.jobs, number))
    return samples


async def _one(testbed: Testbed, subject: Subject, jobs: int, number: int) -> Sample:
    environment = await testbed.environment()
    async with testbed.operator(subject) as operator, testbed.namespace() as namespace:
        testbed.log.skip()
        operator_before, server_before = operator.usage(), testbed.apiserver_cpu_seconds()
        seconds = await _seconds_to_succeed(testbed, namespace, jobs)
        await seconds_until_quiet(operator.pid, time.monotonic(), _REST_SECONDS)
        after, server_after = operator.usage(), testbed.apiserver_cpu_seconds()
        written = await testbed.log.writes(subject.user)
    _report(number, subject.name, jobs, seconds)
    values = {
        "jobs per second": jobs / seconds,
        "writes": _per_job(beyond_objects(written), jobs),
        "all writes": _per_job(written, jobs),
        "server cpu": (server_after - server_before) / jobs,
        "operator cpu": (after.cpu_seconds - operator_before.cpu_seconds) / jobs,
        "rss": after.rss_bytes / 1e6,
    }
    return Sample(subject.name, case(jobs), number, values, environment, counted(written))


async def _alone(testbed: Testbed, jobs: int, number: int) -> Sample:
    """The same objects without an operator: created, and running workers deleted."""
    environment = await testbed.environment()
    async with testbed.namespace() as namespace, testbed.client_of(baseline.USER) as client:
        before, start = testbed.apiserver_cpu_seconds(), time.monotonic()
        ended = until_jobs(
            testbed.client, namespace, "Complete", jobs, 60 + jobs / _SLOWEST, resource=JOBS
        )
        await asyncio.gather(ended, baseline.post(client, _jobs(namespace, jobs)))
        seconds = time.monotonic() - start
        await baseline.remove_workers(client, namespace)
        manager = testbed.control_plane.process(CONTROLLER_MANAGER).pid
        await seconds_until_quiet(manager, time.monotonic(), _REST_SECONDS)
        used = testbed.apiserver_cpu_seconds() - before
    _report(number, baseline.NAME, jobs, seconds)
    values = {"jobs per second": jobs / seconds, "server cpu": used / jobs}
    return Sample(baseline.NAME, case(jobs), number, values, environment)


def _report(number: int, name: str, jobs: int, seconds: float) -> None:
    say(
        f"jobs: round {number + 1}, {name}: {jobs} jobs in {seconds:.1f} s,"
        f" {jobs / seconds:.1f} per second"
    )


async def _seconds_to_succeed(testbed: Testbed, namespace: str, jobs: int) -> float:
    start = time.monotonic()
    await submit_until(testbed.client, _jobs(namespace, jobs), "Succeeded", 60 + jobs / _SLOWEST)
    return time.monotonic() - start


def _jobs(namespace: str, count: int) -> list[Manifest]:
    return [job(f"job-{number}", namespace, WORKERS) for number in range(count)]


def _per_job(requests: list[Record], jobs: int) -> float:
    return len(requests) / jobs


def compare(samples: Samples) -> list[Comparison | None]:
    """The speed, and the cost of one job."""
    [name] = {each.case for each in samples}
    lines = (
        ("jobs to Succeeded", "jobs per second", "jobs/s", at_least(2)),
        ("writes per job, without its objects", "writes", "writes", at_most(0.4)),
        ("CPU of the API server per job", "server cpu", "s", at_most(0.6)),
        ("CPU of the operator per job", "operator cpu", "s", at_most(1)),
        (f"memory after {name}", "rss", "MB", at_most(1)),
    )
    with_tuned = [
        against(samples, TUNED.name, what=what, value=value, unit=unit, case=name, wanted=wanted)
        for what, value, unit, wanted in lines
    ]
    with_baseline = [
        against(samples, baseline.NAME, what=what, value=value, unit=unit, case=name)
        for what, value, unit, _ in (lines[0], lines[2])
    ]
    return [*with_tuned, *with_baseline]


FIGURE = Figure("jobs", "Many jobs with two workers, to success on a fake node", measure, compare)
