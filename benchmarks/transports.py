"""Compares the two ways to start ranks, ssh and exec, in turns in one run.

    python -m benchmarks.transports                               # needs root: it starts a cluster
    python -m benchmarks.transports --starts 3 --large-starts 0   # a quick run
    python -m benchmarks.transports --starts 0                    # only the job with many workers

A start is a job with two workers on two nodes, from its submission until the first rank prints, and
until the job has succeeded. A job with many workers has two parts, which are measured apart: until
its objects exist, on no node, and until its launcher has a rank in each worker, with real pods
that run already (`many_workers`).
"""

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import many_workers
from benchmarks.operators.conditions import until_jobs
from benchmarks.operators.figures.creation import seconds_to_exist
from benchmarks.operators.jobs import MPIJOBS, job
from benchmarks.operators.real_pods import first_print
from benchmarks.operators.running import Running
from benchmarks.operators.subjects import OURS, turns
from benchmarks.operators.testbed import Testbed, new_testbed
from benchmarks.progress import say
from devcluster import image_builds
from devcluster.cluster import Cluster
from mpi_operator.api.annotations import TRANSPORT
from mpi_operator.api.launcher_transport import Transport
from mpi_operator.kube.resources import Manifest
from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import FLAVOURS, pi

_WAYS = (Transport.SSH, Transport.EXEC)
_MPIS = ("openmpi", "mpich")
_WORKERS = 256
_TIMEOUT = 180.0

Seconds = dict[Transport, list[float]]
Figures = dict[str, Seconds]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    options = _parser().parse_args(arguments)
    archives = image_builds.provide(["kubectl-delivery", *(f"pi-{mpi}" for mpi in _MPIS)])
    cluster = Cluster(nodes=2, audit=True)
    figures = asyncio.run(_measure(cluster, list(archives.values()), options))
    for name, seconds in figures.items():
        print(_line(name, seconds))
    return 0


async def _measure(cluster: Cluster, archives: list[Path], options: argparse.Namespace) -> Figures:
    figures: Figures = {}
    async with new_testbed(cluster) as testbed:
        await asyncio.to_thread(cluster.load, *archives)
        async with testbed.operator(OURS) as operator:
            for number in range(options.starts):
                for way in turns(_WAYS, number):
                    found = await _round(testbed, operator, way)
                    _add(figures, way, found, f"round {number + 1}")
            for way in options.transports if options.large_starts else ():
                for found in await _large_starts(testbed, way, options):
                    _add(figures, way, found, "many workers")
    return figures


def _add(figures: Figures, way: Transport, found: dict[str, float], when: str) -> None:
    for name, value in found.items():
        figures.setdefault(name, {}).setdefault(way, []).append(value)
        say(f"{when}, {way}: {name} {value:.2f} s")


async def _round(testbed: Testbed, operator: Running, way: Transport) -> dict[str, float]:
    values: dict[str, float] = {}
    for mpi in _MPIS:
        printed, succeeded = await _start(testbed, mpi, way)
        values |= {f"{mpi}: first rank": printed, f"{mpi}: success": succeeded}
    return values | {
        f"{_WORKERS} workers and the launcher exist": await _many(operator, testbed, way)
    }


async def _start(testbed: Testbed, mpi: str, way: Transport) -> tuple[float, float]:
    async with testbed.namespace() as namespace:
        started = time.time()
        made = pi("pi", FLAVOURS[mpi], runPolicy={"cleanPodPolicy": "None"})
        await testbed.client.create(MPIJOBS, _by(way, made, namespace))
        await until_jobs(testbed.client, namespace, "Succeeded", 1, _TIMEOUT)
        succeeded = time.time()
        return await first_print(Lab(testbed.client, namespace)) - started, succeeded - started


async def _many(operator: Running, testbed: Testbed, way: Transport) -> float:
    async with testbed.namespace() as namespace:
        made = job("big", namespace, _WORKERS, runs=False)
        requests = await testbed.made(operator, _by(way, made, namespace), _TIMEOUT)
        return seconds_to_exist(requests, OURS.user)


async def _large_starts(
    testbed: Testbed, way: Transport, options: argparse.Namespace
) -> list[dict[str, float]]:
    what = f"{_MPIS[0]}, {options.workers} workers that run"
    made = many_workers.job(_MPIS[0], options.workers, options.large_starts)
    async with testbed.namespace() as namespace:
        lab = Lab(testbed.client, namespace)
        starts = await many_workers.measure(lab, _by(way, made, namespace))
    return [
        {f"{what}: first rank": each.first_rank, f"{what}: all ranks": each.all_ranks}
        for each in starts
    ]


def _by(way: Transport, made: Manifest, namespace: str) -> Manifest:
    metadata = {"namespace": namespace, "annotations": {TRANSPORT: way.value}}
    return {**made, "metadata": {**made["metadata"], **metadata}}


def _line(name: str, seconds: Seconds) -> str:
    shown = (
        f"{way} {statistics.median(values):.2f} s ({min(values):.2f} to {max(values):.2f})"
        for way, values in seconds.items()
    )
    return f"{name}: {', '.join(shown)}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--starts", type=int, default=10, help="Starts of each (default: 10)")
    parser.add_argument(
        "--large-starts",
        type=int,
        default=5,
        help="Starts of each with many workers, in one job (default: 5)",
    )
    parser.add_argument(
        "--workers",
        type=int,
        default=_WORKERS,
        help=f"Number of these workers (default: {_WORKERS})",
    )
    parser.add_argument(
        "--transports",
        type=Transport,
        nargs="+",
        choices=_WAYS,
        default=_WAYS,
        help="Transports of the job with many workers (default: both)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
