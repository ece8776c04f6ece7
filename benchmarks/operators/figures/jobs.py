"""Many small jobs from submission to success, on a fake node: how fast, and at what cost."""

import asyncio
import time

from benchmarks.goal import at_least, at_most
from benchmarks.operators import floor
from benchmarks.operators.comparison import Comparison, against
from benchmarks.operators.conditions import submit_until, until_jobs
from benchmarks.operators.contenders import OURS, TUNED, Contender, turns
from benchmarks.operators.figures.figure import Figure
from benchmarks.operators.jobs import job
from benchmarks.operators.kwok import fake_node
from benchmarks.operators.quiet import seconds_until_quiet
from benchmarks.operators.requests import beyond_objects
from benchmarks.operators.samples import Sample, Samples
from benchmarks.operators.scale import Scale
from benchmarks.operators.stage import Stage
from benchmarks.progress import rounds, say
from devcluster.audit import Record, counted
from devcluster.control_plane import CONTROLLER_MANAGER
from mpi_operator.kube.resources import JOBS, Manifest

WORKERS = 2
_SLOWEST = 0.5  # jobs a second
_REST_SECONDS = 60.0


def case(jobs: int) -> str:
    return f"{jobs} jobs"


async def measure(stage: Stage, scale: Scale) -> list[Sample]:
    """Everybody in turns, with the same node."""
    samples = []
    # A young API server enlarges its caches while it works, and ends watches for that.
    say("jobs: a turn that does not count")
    async with fake_node(stage, launchers_end=True):
        await _one(stage, TUNED, scale.jobs, number=-1)
    for number in rounds(min(scale.rounds, 3), scale.minutes):
        for contender in turns((OURS, TUNED, None), number):
            async with fake_node(stage, launchers_end=True):
                if contender is None:
                    samples.append(await _alone(stage, scale.jobs, number))
                else:
                    samples.append(await _one(stage, contender, scale.jobs, number))
    return samples


async def _one(stage: Stage, contender: Contender, jobs: int, number: int) -> Sample:
    circumstances = await stage.circumstances()
    async with stage.operator(contender) as operator, stage.namespace() as namespace:
        stage.log.skip()
        operator_before, server_before = operator.usage(), stage.apiserver_cpu_seconds()
        seconds = await _seconds_to_succeed(stage, namespace, jobs)
        await seconds_until_quiet(operator.pid, time.monotonic(), _REST_SECONDS)
        after, server_after = operator.usage(), stage.apiserver_cpu_seconds()
        written = await stage.log.writes(contender.user)
    _tell(number, contender.name, jobs, seconds)
    values = {
        "jobs per second": jobs / seconds,
        "writes": _per_job(beyond_objects(written), jobs),
        "all writes": _per_job(written, jobs),
        "server cpu": (server_after - server_before) / jobs,
        "operator cpu": (after.cpu_seconds - operator_before.cpu_seconds) / jobs,
        "rss": after.rss_bytes / 1e6,
    }
    return Sample(contender.name, case(jobs), number, values, circumstances, counted(written))


async def _alone(stage: Stage, jobs: int, number: int) -> Sample:
    """The same objects without an operator: made, and of those that run the workers removed."""
    circumstances = await stage.circumstances()
    async with stage.namespace() as namespace, stage.client_of(floor.USER) as client:
        before, start = stage.apiserver_cpu_seconds(), time.monotonic()
        ended = until_jobs(
            stage.client, namespace, "Complete", jobs, 60 + jobs / _SLOWEST, resource=JOBS
        )
        await asyncio.gather(ended, floor.post(client, _jobs(namespace, jobs)))
        seconds = time.monotonic() - start
        await floor.remove_workers(client, namespace)
        manager = stage.control_plane.process(CONTROLLER_MANAGER).pid
        await seconds_until_quiet(manager, time.monotonic(), _REST_SECONDS)
        used = stage.apiserver_cpu_seconds() - before
    _tell(number, floor.NAME, jobs, seconds)
    values = {"jobs per second": jobs / seconds, "server cpu": used / jobs}
    return Sample(floor.NAME, case(jobs), number, values, circumstances)


def _tell(number: int, name: str, jobs: int, seconds: float) -> None:
    say(
        f"jobs: round {number + 1}, {name}: {jobs} jobs in {seconds:.1f} s,"
        f" {jobs / seconds:.1f} a second"
    )


async def _seconds_to_succeed(stage: Stage, namespace: str, jobs: int) -> float:
    start = time.monotonic()
    await submit_until(stage.client, _jobs(namespace, jobs), "Succeeded", 60 + jobs / _SLOWEST)
    return time.monotonic() - start


def _jobs(namespace: str, count: int) -> list[Manifest]:
    return [job(f"job-{number}", namespace, WORKERS) for number in range(count)]


def _per_job(requests: list[Record], jobs: int) -> float:
    return len(requests) / jobs


def compare(samples: Samples) -> list[Comparison | None]:
    """Speed, and what one job costs."""
    [name] = {each.case for each in samples}
    lines = (
        ("jobs to Succeeded", "jobs per second", "jobs/s", at_least(2)),
        ("writes for a job beyond its objects", "writes", "writes", at_most(0.4)),
        ("CPU of the API server for a job", "server cpu", "s", at_most(0.6)),
        ("CPU of the operator for a job", "operator cpu", "s", at_most(1)),
        (f"memory after {name}", "rss", "MB", at_most(1)),
    )
    beside_tuned = [
        against(samples, TUNED.name, what=what, value=value, unit=unit, case=name, wanted=wanted)
        for what, value, unit, wanted in lines
    ]
    beside_nobody = [
        against(samples, floor.NAME, what=what, value=value, unit=unit, case=name)
        for what, value, unit, _ in (lines[0], lines[2])
    ]
    return [*beside_tuned, *beside_nobody]


FIGURE = Figure("jobs", "Many jobs with two workers, to success on a fake node", measure, compare)
