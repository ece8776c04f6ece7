"""The start of an operator with running jobs: its writes, and the time until it is idle.

Each operator gets jobs whose objects it created itself, because operators differ in them.
"""

import asyncio

from benchmarks.goal import at_most
from benchmarks.operators.comparison import Comparison, absolute, against
from benchmarks.operators.conditions import submit_until
from benchmarks.operators.figures.figure import Figure
from benchmarks.operators.jobs import job
from benchmarks.operators.kwok import fake_node
from benchmarks.operators.quiet import seconds_until_quiet
from benchmarks.operators.samples import Sample, Samples
from benchmarks.operators.scale import Scale
from benchmarks.operators.subjects import OURS, TUNED, Subject
from benchmarks.operators.testbed import Testbed
from benchmarks.progress import say
from devcluster.audit import counted

_SLOWEST = 1.0  # jobs per second
_REST_SECONDS = 300.0


def case(jobs: int) -> str:
    return f"{jobs} unfinished jobs"


async def measure(testbed: Testbed, scale: Scale) -> list[Sample]:
    """One subject after another, because each would reconcile the jobs of the other."""
    samples = []
    for subject in (OURS, TUNED):
        environment = await testbed.environment()
        async with fake_node(testbed, launchers_end=False), testbed.namespace() as namespace:
            await _fill(testbed, subject, namespace, scale.unfinished)
            for number in range(scale.restarts):
                found = await _one(testbed, subject, number)
                samples.append(
                    Sample(
                        subject.name,
                        case(scale.unfinished),
                        number,
                        found[0],
                        environment,
                        found[1],
                    )
                )
    return samples


async def _fill(testbed: Testbed, subject: Subject, namespace: str, jobs: int) -> None:
    say(f"restart: {subject.name} creates {jobs} running jobs")
    made = [job(f"job-{number}", namespace, 1) for number in range(jobs)]
    async with testbed.cold_operator(subject) as operator:
        await submit_until(testbed.client, made, "Running", 60 + jobs / _SLOWEST)
        now = asyncio.get_running_loop().time()
        await seconds_until_quiet(operator.pid, now, _REST_SECONDS)


async def _one(
    testbed: Testbed, subject: Subject, number: int
) -> tuple[dict[str, float], dict[str, int]]:
    testbed.log.skip()
    async with testbed.cold_operator(subject) as operator:
        seconds = await seconds_until_quiet(operator.pid, operator.started, _REST_SECONDS)
        cpu = operator.usage().cpu_seconds
        written = await testbed.log.writes(subject.user)
    say(f"restart: {number + 1}, {subject.name}: idle after {seconds:.1f} s, {len(written)} writes")
    values = {"seconds": seconds, "writes": float(len(written)), "cpu": cpu}
    return values, counted(written)


def compare(samples: Samples) -> list[Comparison | None]:
    """Unneeded writes, and time."""
    [name] = {each.case for each in samples}
    return [
        absolute(
            samples,
            TUNED.name,
            what=f"writes at a start with {name}",
            value="writes",
            unit="writes",
            case=name,
            wanted=at_most(0),
        ),
        against(
            samples,
            TUNED.name,
            what=f"start with {name}, until idle",
            value="seconds",
            unit="s",
            case=name,
            wanted=at_most(1),
        ),
        against(
            samples,
            TUNED.name,
            what=f"CPU at a start with {name}",
            value="cpu",
            unit="s",
            case=name,
        ),
    ]


FIGURE = Figure("restart", "A start with running jobs", measure, compare)
