"""An operator that starts where jobs are running: what it writes, and when it has come to rest.

Each works on jobs that it has made itself, because each has its own idea of what is right.
"""

import asyncio

from benchmarks.goal import at_most
from benchmarks.operators.comparison import Comparison, absolute, against
from benchmarks.operators.conditions import submit_until
from benchmarks.operators.contenders import OURS, TUNED, Contender
from benchmarks.operators.figures.figure import Figure
from benchmarks.operators.jobs import job
from benchmarks.operators.kwok import fake_node
from benchmarks.operators.quiet import seconds_until_quiet
from benchmarks.operators.samples import Sample, Samples
from benchmarks.operators.scale import Scale
from benchmarks.operators.stage import Stage
from benchmarks.progress import say
from devcluster.audit import counted

_SLOWEST = 1.0  # jobs a second
_REST_SECONDS = 300.0


def case(jobs: int) -> str:
    return f"{jobs} unfinished jobs"


async def measure(stage: Stage, scale: Scale) -> list[Sample]:
    """One after the other: the jobs of both at once would be everybody's."""
    samples = []
    for contender in (OURS, TUNED):
        circumstances = await stage.circumstances()
        async with fake_node(stage, launchers_end=False), stage.namespace() as namespace:
            await _fill(stage, contender, namespace, scale.unfinished)
            for number in range(scale.restarts):
                found = await _one(stage, contender, number)
                samples.append(
                    Sample(
                        contender.name,
                        case(scale.unfinished),
                        number,
                        found[0],
                        circumstances,
                        found[1],
                    )
                )
    return samples


async def _fill(stage: Stage, contender: Contender, namespace: str, jobs: int) -> None:
    say(f"restart: {contender.name} makes {jobs} jobs that run")
    made = [job(f"job-{number}", namespace, 1) for number in range(jobs)]
    async with stage.cold_operator(contender) as operator:
        await submit_until(stage.client, made, "Running", 60 + jobs / _SLOWEST)
        now = asyncio.get_running_loop().time()
        await seconds_until_quiet(operator.pid, now, _REST_SECONDS)


async def _one(
    stage: Stage, contender: Contender, number: int
) -> tuple[dict[str, float], dict[str, int]]:
    stage.log.skip()
    async with stage.cold_operator(contender) as operator:
        seconds = await seconds_until_quiet(operator.pid, operator.started, _REST_SECONDS)
        cpu = operator.usage().cpu_seconds
        written = await stage.log.writes(contender.user)
    say(
        f"restart: {number + 1}, {contender.name}: at rest after {seconds:.1f} s,"
        f" {len(written)} writes"
    )
    values = {"seconds": seconds, "writes": float(len(written)), "cpu": cpu}
    return values, counted(written)


def compare(samples: Samples) -> list[Comparison | None]:
    """Writes that should not be, and time."""
    [name] = {each.case for each in samples}
    return [
        absolute(
            samples,
            TUNED.name,
            what=f"writes of a start with {name}",
            value="writes",
            unit="writes",
            case=name,
            wanted=at_most(0),
        ),
        against(
            samples,
            TUNED.name,
            what=f"start with {name}, until at rest",
            value="seconds",
            unit="s",
            case=name,
            wanted=at_most(1),
        ),
        against(
            samples,
            TUNED.name,
            what=f"CPU of a start with {name}",
            value="cpu",
            unit="s",
            case=name,
        ),
    ]


FIGURE = Figure("restart", "A start where jobs are running", measure, compare)
