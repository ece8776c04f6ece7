"""The memory of an operator with very many running workers.

All operators get the same jobs, one after another. Our operator creates their pods once, because it
is the fastest, and then the benchmark marks the workers as running, as a kubelet would.
"""

import asyncio

from benchmarks.goal import at_most
from benchmarks.kubelet import let_run
from benchmarks.measure import at_once
from benchmarks.operators.comparison import Comparison, against
from benchmarks.operators.figures.figure import Figure
from benchmarks.operators.jobs import job
from benchmarks.operators.quiet import seconds_until_quiet
from benchmarks.operators.samples import Sample, Samples
from benchmarks.operators.scale import Scale
from benchmarks.operators.subjects import OURS, TUNED, Subject, turns
from benchmarks.operators.testbed import Testbed
from benchmarks.progress import rounds, say

_WORKERS = 1000  # per job; its ConfigMap could hold far more
_REST_SECONDS = 180.0


def case(pods: int) -> str:
    return f"{pods} running workers"


async def measure(testbed: Testbed, scale: Scale) -> list[Sample]:
    """All subjects in turns, on the same jobs."""
    samples: list[Sample] = []
    async with testbed.namespace() as namespace:
        await _fill(testbed, namespace, scale.pods)
        for number in rounds(min(scale.rounds, 2), scale.minutes):
            samples += [
                await _one(testbed, subject, scale.pods, number)
                for subject in turns((OURS, TUNED), number)
            ]
    return samples


async def _fill(testbed: Testbed, namespace: str, pods: int) -> None:
    say(f"memory: creating {pods} running workers")
    sizes = [min(_WORKERS, pods - start) for start in range(0, pods, _WORKERS)]
    async with testbed.cold_operator(OURS) as operator:
        for number, workers in enumerate(sizes):
            await testbed.made(operator, job(f"big-{number}", namespace, workers, runs=False))
        await _let_run(testbed, namespace, sizes)
        await seconds_until_quiet(operator.pid, asyncio.get_running_loop().time(), _REST_SECONDS)


async def _let_run(testbed: Testbed, namespace: str, sizes: list[int]) -> None:
    names = [f"big-{n}-worker-{i}" for n, size in enumerate(sizes) for i in range(size)]

    async def run(index: int) -> None:
        await let_run(testbed.client, namespace, names[index], index)

    await at_once(run, range(len(names)), 32)


async def _one(testbed: Testbed, subject: Subject, pods: int, number: int) -> Sample:
    environment = await testbed.environment()
    async with testbed.cold_operator(subject) as operator:
        await seconds_until_quiet(operator.pid, operator.started, _REST_SECONDS)
        megabytes = operator.usage().rss_bytes / 1e6
    say(f"memory: round {number + 1}, {subject.name}: {megabytes:.0f} MB with {pods} workers")
    return Sample(subject.name, case(pods), number, {"rss": megabytes}, environment)


def compare(samples: Samples) -> list[Comparison | None]:
    """The resident memory."""
    [name] = {each.case for each in samples}
    return [
        against(
            samples,
            TUNED.name,
            what=f"memory with {name}",
            value="rss",
            unit="MB",
            case=name,
            wanted=at_most(1),
        )
    ]


FIGURE = Figure("memory", "Very many running workers", measure, compare)
