"""What an operator that looks after very many running workers keeps in memory.

All look at the same jobs, one after the other: our operator makes these once, because it is the
fastest, and then we say that the workers run, as a kubelet would.
"""

import asyncio

from benchmarks.goal import at_most
from benchmarks.kubelet import let_run
from benchmarks.measure import at_once
from benchmarks.operators.comparison import Comparison, against
from benchmarks.operators.contenders import OURS, TUNED, Contender, turns
from benchmarks.operators.figures.figure import Figure
from benchmarks.operators.jobs import job
from benchmarks.operators.quiet import seconds_until_quiet
from benchmarks.operators.samples import Sample, Samples
from benchmarks.operators.scale import Scale
from benchmarks.operators.stage import Stage
from benchmarks.progress import rounds, say

_WORKERS = 1000  # of one job: what its ConfigMap can hold is far more
_REST_SECONDS = 180.0


def case(pods: int) -> str:
    return f"{pods} running workers"


async def measure(stage: Stage, scale: Scale) -> list[Sample]:
    """Everybody in turns, on the same jobs."""
    samples: list[Sample] = []
    async with stage.namespace() as namespace:
        await _fill(stage, namespace, scale.pods)
        for number in rounds(min(scale.rounds, 2), scale.minutes):
            samples += [
                await _one(stage, contender, scale.pods, number)
                for contender in turns((OURS, TUNED), number)
            ]
    return samples


async def _fill(stage: Stage, namespace: str, pods: int) -> None:
    say(f"memory: making {pods} workers that run")
    sizes = [min(_WORKERS, pods - start) for start in range(0, pods, _WORKERS)]
    async with stage.cold_operator(OURS) as operator:
        for number, workers in enumerate(sizes):
            await stage.made(operator, job(f"big-{number}", namespace, workers, runs=False))
        await _let_run(stage, namespace, sizes)
        await seconds_until_quiet(operator.pid, asyncio.get_running_loop().time(), _REST_SECONDS)


async def _let_run(stage: Stage, namespace: str, sizes: list[int]) -> None:
    names = [f"big-{n}-worker-{i}" for n, size in enumerate(sizes) for i in range(size)]

    async def run(index: int) -> None:
        await let_run(stage.client, namespace, names[index], index)

    await at_once(run, range(len(names)), 32)


async def _one(stage: Stage, contender: Contender, pods: int, number: int) -> Sample:
    circumstances = await stage.circumstances()
    async with stage.cold_operator(contender) as operator:
        await seconds_until_quiet(operator.pid, operator.started, _REST_SECONDS)
        megabytes = operator.usage().rss_bytes / 1e6
    say(f"memory: round {number + 1}, {contender.name}: {megabytes:.0f} MB with {pods} workers")
    return Sample(contender.name, case(pods), number, {"rss": megabytes}, circumstances)


def compare(samples: Samples) -> list[Comparison | None]:
    """The resident sets."""
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


FIGURE = Figure("memory", "Very many workers that run", measure, compare)
