"""One job with very many workers: from its submission until all its pods and its launcher exist.

Plain POSTs of the same pods show how fast this API server can be. No node can run these pods, so
that only their creation is measured.
"""

from collections.abc import Sequence

from benchmarks.goal import at_least, at_most
from benchmarks.operators import raw
from benchmarks.operators.comparability import Environment
from benchmarks.operators.comparison import Comparison, against, between_cases
from benchmarks.operators.figures.figure import Figure
from benchmarks.operators.jobs import MPIJOBS, WORKER_SELECTOR, job
from benchmarks.operators.requests import span
from benchmarks.operators.running import Running
from benchmarks.operators.samples import Sample, Samples
from benchmarks.operators.scale import Scale
from benchmarks.operators.subjects import GO, OURS, TUNED, Subject, turns
from benchmarks.operators.testbed import Testbed
from benchmarks.progress import rounds, say
from devcluster.audit import Record
from mpi_operator.kube.client import Selector
from mpi_operator.kube.resources import PODS, Manifest

RAW = "raw"
_SLOWEST = 3.0  # pods per second; the Go operator creates 5


def case(workers: int) -> str:
    return f"{workers} workers"


async def measure(testbed: Testbed, scale: Scale) -> list[Sample]:
    """All subjects in turns, and the plain POSTs."""
    samples: list[Sample] = []
    known: dict[
        int, list[Manifest]
    ] = {}  # the pods of each size, once our operator has created them
    for number in rounds(scale.rounds, scale.minutes):
        for subject in turns(_contenders(scale, number), number):
            if subject is None:
                samples += await _raw_round(testbed, known, number)
            else:
                samples += await _round(testbed, subject, scale, number, known)
    return samples


def _contenders(scale: Scale, number: int) -> list[Subject | None]:
    """The subjects of a round, ours first; None stands for the plain POSTs."""
    slow = [GO] if number < scale.slow_rounds else []
    return [OURS, TUNED, *slow, None]


async def _round(
    testbed: Testbed, subject: Subject, scale: Scale, number: int, known: dict[int, list[Manifest]]
) -> list[Sample]:
    samples = []
    environment = await testbed.environment()
    async with testbed.operator(subject) as operator:
        for workers in scale.slow_workers if subject == GO else scale.workers:
            async with testbed.namespace() as namespace:
                sample = await _one(testbed, operator, namespace, workers, number, environment)
                if subject == OURS:
                    known[workers] = await _workers(testbed, namespace)
            samples.append(sample)
    return samples


async def _one(
    testbed: Testbed,
    operator: Running,
    namespace: str,
    workers: int,
    number: int,
    environment: Environment,
) -> Sample:
    limit = 60 + workers / _SLOWEST
    requests = await testbed.made(operator, job("big", namespace, workers, runs=False), limit)
    seconds = seconds_to_exist(requests, operator.subject.user)
    name = operator.subject.name
    _report(number, name, workers, seconds)
    return _sample(name, workers, number, seconds, environment)


def seconds_to_exist(requests: Sequence[Record], user: str) -> float:
    """From the arrival of the job at the API server to the last pod or the launcher's Job."""
    came = min(each.received for each in requests if each.has_created("mpijobs"))
    made = (each for each in requests if each.user == user)
    return (
        max(each.answered for each in made if each.has_created("pods") or each.has_created("jobs"))
        - came
    )


async def _workers(testbed: Testbed, namespace: str) -> list[Manifest]:
    return (await testbed.client.list(PODS, namespace, Selector(labels=WORKER_SELECTOR))).items


async def _raw_round(
    testbed: Testbed, known: dict[int, list[Manifest]], number: int
) -> list[Sample]:
    environment = await testbed.environment()
    samples = []
    for workers, pods in known.items():
        async with testbed.namespace() as namespace:
            owner = await testbed.client.create(MPIJOBS, job("big", namespace, workers, runs=False))
            bodies = raw.bodies(pods, namespace, owner["metadata"]["uid"])
            testbed.log.skip()
            await raw.post(str(testbed.control_plane.kubeconfig(raw.USER)), namespace, bodies)
            requests = await testbed.log.until_now()
        posts = [each for each in requests if each.user == raw.USER and each.has_created("pods")]
        seconds = span(posts)
        _report(number, RAW, workers, seconds)
        samples.append(_sample(RAW, workers, number, seconds, environment))
    return samples


def _sample(
    name: str, workers: int, number: int, seconds: float, environment: Environment
) -> Sample:
    values = {
        "seconds": seconds,
        "pods per second": workers / seconds,
        "ms per pod": seconds / workers * 1000,
    }
    return Sample(name, case(workers), number, values, environment)


def _report(number: int, name: str, workers: int, seconds: float) -> None:
    say(
        f"creation: round {number + 1}, {name}, {workers} workers: {seconds:.2f} s,"
        f" {workers / seconds:.0f} pods/s"
    )


def compare(samples: Samples) -> list[Comparison | None]:
    """The rate at every size, and how the time per pod grows with the job."""
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
            what=f"creating {size} workers",
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
        what=f"time per pod, {sizes[-1]} workers relative to {sizes[0]}",
        value="ms per pod",
        unit="ms",
        wanted=at_most(1.3),
    )
    return [*rates, growth]


FIGURE = Figure("creation", "One job, from submission until everything exists", measure, compare)
