"""Compares how soon ranks print with our operator and the Go operator, with real pods on two nodes.

Both run as processes of this machine, one at a time, with the same images. Exits with 1 if a goal
is missed.

    python -m benchmarks.operators.real_pods                          # 20 starts of each; root
    python -m benchmarks.operators.real_pods --starts 3 --mpi mpich   # a quick run

Open MPI is 4.1 here: the Go operator does not pass the hostfile to Open MPI 5, so that all ranks
would run in the launcher.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path

from benchmarks.goal import at_most
from benchmarks.operators import baseline, machine
from benchmarks.operators.comparison import Comparison, absolute, against
from benchmarks.operators.conditions import until_jobs
from benchmarks.operators.jobs import MPIJOBS
from benchmarks.operators.report import Results, report
from benchmarks.operators.samples import Sample, Samples, comparable
from benchmarks.operators.subjects import GO_PROGRAM, OURS, TUNED, Subject, turns
from benchmarks.operators.testbed import Testbed, new_testbed
from benchmarks.progress import say
from devcluster import binaries, image_builds
from devcluster.cluster import Cluster
from mpi_operator.kube.client import LogOptions
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import JOBS, Manifest
from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import FLAVOURS, pi

_MPIS = ("openmpi-4", "mpich", "intel")
_BLOCK = 5  # starts of one subject in a row
_TIMEOUT = 120.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit code says whether all goals are met."""
    options = _parser().parse_args(arguments)
    binaries.provide([GO_PROGRAM])
    archives = image_builds.provide([f"pi-{mpi}" for mpi in options.mpi])
    cluster = Cluster(nodes=2, audit=True)
    found = asyncio.run(_measure(cluster, list(archives.values()), options))
    return report("real-pods", found, machine.facts())


async def _measure(cluster: Cluster, archives: list[Path], options: argparse.Namespace) -> Results:
    found = Results()
    async with new_testbed(cluster) as testbed:
        await asyncio.to_thread(cluster.load, *archives)
        for mpi in options.mpi:
            samples = [
                sample
                for block in range(0, options.starts, _BLOCK)
                for subject in turns((OURS, TUNED, None), block // _BLOCK)
                for sample in await _block(
                    testbed, subject, mpi, range(block, min(block + _BLOCK, options.starts))
                )
            ]
            found.samples[mpi] = samples
            found.comparisons[mpi] = compare(comparable(samples), mpi)
    return found


async def _block(
    testbed: Testbed, subject: Subject | None, mpi: str, numbers: range
) -> list[Sample]:
    environment = await testbed.environment()
    samples = []
    name = subject.name if subject else baseline.NAME
    async with testbed.operator(subject) if subject else nullcontext():
        for number in numbers:
            async with testbed.namespace() as namespace:
                lab = Lab(testbed.client, namespace)
                values = await _start(lab, mpi, _run if subject else _run_alone)
            say(
                f"{mpi}: start {number + 1}, {name}: printed after"
                f" {values['first print']:.2f} s, succeeded after {values['success']:.2f} s,"
                f" {values['restarts']:.0f} restarts of the launcher"
            )
            samples.append(Sample(name, mpi, number, values, environment))
    return samples


async def _run(client: HttpClient, job: Manifest) -> None:
    """Run a job with an operator until it has succeeded."""
    await client.create(MPIJOBS, job)
    await until_jobs(client, job["metadata"]["namespace"], "Succeeded", 1, _TIMEOUT)


async def _run_alone(client: HttpClient, job: Manifest) -> None:
    """Run a job without an operator until its launcher's Job is complete."""
    await baseline.post(client, [job])
    await until_jobs(client, job["metadata"]["namespace"], "Complete", 1, _TIMEOUT, resource=JOBS)


async def _start(
    lab: Lab, mpi: str, run: Callable[[HttpClient, Manifest], Awaitable[None]]
) -> dict[str, float]:
    started = time.time()
    await run(lab.client, _job(lab.namespace, mpi))
    succeeded = time.time()
    printed = await first_print(lab)
    return {
        "first print": printed - started,
        "success": succeeded - started,
        "restarts": float(await lab.restarts("pi")),
    }


def _job(namespace: str, mpi: str) -> Manifest:
    # Keep the workers: their logs help if something goes wrong.
    job = pi("pi", FLAVOURS[mpi], runPolicy={"cleanPodPolicy": "None"})
    return {**job, "metadata": {**job["metadata"], "namespace": namespace}}


async def first_print(lab: Lab) -> float:
    """When the first rank printed, by the clock of the node, which is that of this machine."""
    [launcher] = (await lab.launchers("pi"))[-1:]
    name = launcher["metadata"]["name"]
    async for line in lab.client.log(name, lab.namespace, LogOptions(timestamps=True)):
        moment, _, text = line.decode(errors="replace").partition(" ")
        if text.startswith("rank "):
            return datetime.fromisoformat(moment).timestamp()
    raise RuntimeError(f"No rank of {lab.namespace}/pi has printed anything.")


def compare(samples: Samples, mpi: str) -> list[Comparison]:
    """The times, and the restarts of launchers."""
    lines = [
        against(
            samples,
            rival,
            what=f"{mpi}: submission until {what}",
            value=value,
            unit="s",
            case=mpi,
            wanted=wanted,
        )
        for rival, wanted in ((TUNED.name, at_most(0.7)), (baseline.NAME, None))
        for what, value in (("a rank prints", "first print"), ("success", "success"))
    ]
    starts = sum(each.subject == OURS.name for each in samples)
    restarts = absolute(
        _summed(samples),
        TUNED.name,
        what=f"{mpi}: restarts of launchers in {starts} starts",
        value="restarts",
        unit="restarts",
        case=mpi,
        wanted=at_most(0),
    )
    return [each for each in (*lines, restarts) if each is not None]


def _summed(samples: Samples) -> list[Sample]:
    """One sample per subject with the sum of its restarts: a median would hide rare ones."""
    return [
        Sample(
            name,
            samples[0].case,
            0,
            {"restarts": sum(s.values["restarts"] for s in samples if s.subject == name)},
            samples[0].environment,
        )
        for name in dict.fromkeys(each.subject for each in samples)
    ]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.operators.real_pods",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--starts",
        type=int,
        default=20,
        help="Number of starts of each operator with each MPI (default: 20)",
    )
    parser.add_argument("--mpi", nargs="+", choices=_MPIS, default=_MPIS, help=", ".join(_MPIS))
    return parser


if __name__ == "__main__":
    sys.exit(main())
