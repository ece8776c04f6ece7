"""One job with very many workers: from its submission until all its pods and its launcher exist.

Beside it the same pods by plain POSTs, which is as fast as this API server can be. Nobody can run
these pods, so that making them is all that happens.
"""

from collections.abc import Sequence

from benchmarks.goal import at_least, at_most
from benchmarks.operators import raw
from benchmarks.operators.comparison import Comparison, against, between_cases
from benchmarks.operators.contenders import GO, OURS, TUNED, Contender, turns
from benchmarks.operators.fairness import Circumstances
from benchmarks.operators.figures.figure import Figure
from benchmarks.operators.jobs import MPIJOBS, WORKER_SELECTOR, job
from benchmarks.operators.requests import span
from benchmarks.operators.running import Running
from benchmarks.operators.samples import Sample, Samples
from benchmarks.operators.scale import Scale
from benchmarks.operators.stage import Stage
from benchmarks.progress import rounds, say
from devcluster.audit import Record
from mpi_operator.kube.client import Selector
from mpi_operator.kube.resources import PODS, Manifest

RAW = "raw"
_SLOWEST = 3.0  # pods a second; the Go operator makes 5


def case(workers: int) -> str:
    return f"{workers} workers"


async def measure(stage: Stage, scale: Scale) -> list[Sample]:
    """Everybody in turns, the plain POSTs too."""
    samples: list[Sample] = []
    known: dict[int, list[Manifest]] = {}  # the pods of each size, once ours has made them
    for number in rounds(scale.rounds, scale.minutes):
        for contender in turns(_contenders(scale, number), number):
            if contender is None:
                samples += await _raw_round(stage, known, number)
            else:
                samples += await _round(stage, contender, scale, number, known)
    return samples


def _contenders(scale: Scale, number: int) -> list[Contender | None]:
    """Who takes part in a round, ours first; None are the plain POSTs."""
    slow = [GO] if number < scale.slow_rounds else []
    return [OURS, TUNED, *slow, None]


async def _round(
    stage: Stage, contender: Contender, scale: Scale, number: int, known: dict[int, list[Manifest]]
) -> list[Sample]:
    samples = []
    circumstances = await stage.circumstances()
    async with stage.operator(contender) as operator:
        for workers in scale.slow_workers if contender == GO else scale.workers:
            async with stage.namespace() as namespace:
                sample = await _one(stage, operator, namespace, workers, number, circumstances)
                if contender == OURS:
                    known[workers] = await _workers(stage, namespace)
            samples.append(sample)
    return samples


async def _one(
    stage: Stage,
    operator: Running,
    namespace: str,
    workers: int,
    number: int,
    circumstances: Circumstances,
) -> Sample:
    limit = 60 + workers / _SLOWEST
    requests = await stage.made(operator, job("big", namespace, workers, runs=False), limit)
    seconds = seconds_to_exist(requests, operator.contender.user)
    name = operator.contender.name
    _tell(number, name, workers, seconds)
    return _sample(name, workers, number, seconds, circumstances)


def seconds_to_exist(requests: Sequence[Record], user: str) -> float:
    """From the moment the job came to the API server to the last pod, or the launcher's Job."""
    came = min(each.received for each in requests if each.has_created("mpijobs"))
    made = (each for each in requests if each.user == user)
    return (
        max(each.answered for each in made if each.has_created("pods") or each.has_created("jobs"))
        - came
    )


async def _workers(stage: Stage, namespace: str) -> list[Manifest]:
    return (await stage.client.list(PODS, namespace, Selector(labels=WORKER_SELECTOR))).items


async def _raw_round(stage: Stage, known: dict[int, list[Manifest]], number: int) -> list[Sample]:
    circumstances = await stage.circumstances()
    samples = []
    for workers, pods in known.items():
        async with stage.namespace() as namespace:
            owner = await stage.client.create(MPIJOBS, job("big", namespace, workers, runs=False))
            bodies = raw.bodies(pods, namespace, owner["metadata"]["uid"])
            stage.log.skip()
            await raw.post(str(stage.control_plane.kubeconfig(raw.USER)), namespace, bodies)
            requests = await stage.log.until_now()
        posts = [each for each in requests if each.user == raw.USER and each.has_created("pods")]
        seconds = span(posts)
        _tell(number, RAW, workers, seconds)
        samples.append(_sample(RAW, workers, number, seconds, circumstances))
    return samples


def _sample(
    name: str, workers: int, number: int, seconds: float, circumstances: Circumstances
) -> Sample:
    values = {
        "seconds": seconds,
        "pods per second": workers / seconds,
        "ms per pod": seconds / workers * 1000,
    }
    return Sample(name, case(workers), number, values, circumstances)


def _tell(number: int, name: str, workers: int, seconds: float) -> None:
    say(
        f"creation: round {number + 1}, {name}, {workers} workers: {seconds:.2f} s,"
        f" {workers / seconds:.0f} pods/s"
    )


def compare(samples: Samples) -> list[Comparison | None]:
    """Rates at every size, and how the time for a pod grows with the job."""
    sizes = sorted({int(each.case.split()[0]) for each in samples})
    rivals = {
        GO.name: {256: at_least(60)},
        TUNED.name: dict.fromkeys(sizes, at_least(4)),
        RAW: {sizes[-1]: at_least(0.85)},
    }
    rates = [
        against(
            samples,
            rival,
            what=f"{size} workers made",
            value="pods per second",
            unit="pods/s",
            case=case(size),
            wanted=goals.get(size),
        )
        for rival, goals in rivals.items()
        for size in sizes
    ]
    growth = between_cases(
        samples,
        (case(sizes[-1]), case(sizes[0])),
        what=f"time for a pod, of {sizes[-1]} beside of {sizes[0]}",
        value="ms per pod",
        unit="ms",
        wanted=at_most(1.3),
    )
    return [*rates, growth]


FIGURE = Figure("creation", "One job, from submission until everything exists", measure, compare)
