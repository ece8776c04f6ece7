"""Estimates the cost of 100,000 pods and 10,000 jobs from small measurements without a server.

    python -m benchmarks.limits

Each number comes from the code of the operator; `benchmarks.operators` measures what a cluster adds
(the API server, etcd, the network).
"""

import gc
import json
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import msgspec

from benchmarks.pods import running_status, worker_pod
from mpi_operator.api.decode import decode_job
from mpi_operator.build.config_map import config_map
from mpi_operator.build.settings import Settings
from mpi_operator.controller.cached_types import Pod
from mpi_operator.controller.plan import make_plan
from mpi_operator.controller.remember import remember
from mpi_operator.controller.status import status_of
from mpi_operator.kube.cache import Cache
from mpi_operator.kube.resources import PODS
from tests.support.mpijobs import mpijob
from tests.support.worlds import World, running_world

CONFIG_MAP_LIMIT = 2**20  # of the API server, for all data together
PODS_TO_HOLD = 100_000
JOBS_TO_HOLD = 10_000
_SAMPLE = 5_000


@dataclass(frozen=True)
class Costs:
    """The cost of one pod, change or reconcile."""

    pod_bytes: float
    """In the cache, with its indexes."""
    wire_bytes: float
    """As received from a watch."""
    decode_seconds: float
    """CPU for one change of a pod from a watch."""
    reconcile_seconds: float
    """CPU for one reconcile of a small settled job."""


def main() -> None:
    """Measure, and print the estimates."""
    for line in (*config_map_lines(), "", *reconcile_lines(), "", *projection(_costs())):
        print(line)


def config_map_lines() -> Iterator[str]:
    """How large a job may be before its ConfigMap is too large."""
    for name, namespace in (("pi", "default"), ("a" * 40, "n" * 30)):
        sizes = [config_map_bytes(name, namespace, workers) for workers in (1000, 2000)]
        each, most = (sizes[1] - sizes[0]) / 1000, largest_job(name, namespace)
        what = f"a name of {len(name)} letters in a namespace of {len(namespace)}"
        yield f"ConfigMap with {what}: {each:.0f} bytes per worker, {most:,} workers at most"


def config_map_bytes(name: str, namespace: str, workers: int) -> int:
    """The size of the ConfigMap with all workers running."""
    job = decode_job(mpijob(name, namespace, worker={"replicas": workers}))
    made = config_map(job, range(workers), Settings())
    return sum(len(text.encode()) for text in made["data"].values())


def largest_job(name: str, namespace: str) -> int:
    """The largest number of workers whose ConfigMap the API server accepts."""
    low, high = 1, 20_000
    while low < high:
        middle = (low + high + 1) // 2
        if config_map_bytes(name, namespace, middle) <= CONFIG_MAP_LIMIT:
            low = middle
        else:
            high = middle - 1
    return low


def reconcile_lines() -> Iterator[str]:
    """The cost of a reconcile, by the size of the job."""
    for workers in (2, 100, 1000, 10_000):
        seconds = reconcile_seconds(workers)
        yield (
            f"reconcile of a settled job with {workers:,} workers: {seconds * 1000:.2f} ms of CPU,"
            f" {seconds / workers * 1e6:.1f} µs per worker"
        )


def reconcile_seconds(workers: int) -> float:
    """CPU for one reconcile of a running job without changes, with the operator's own caches."""
    world = running_world(workers).rest()
    repeats = max(3, 2000 // workers)
    start = time.process_time()
    for _ in range(repeats):
        _reconcile(world)
    return (time.process_time() - start) / repeats


def _reconcile(world: World) -> None:
    observed = world.operator.observer.observe(world.key)
    if observed is None:
        raise RuntimeError("The job is not in the caches.")
    seen = replace(observed, state=remember(observed.state, observed, world.now))
    plan = make_plan(seen, world.settings, world.now)
    if plan.actions or status_of(seen, plan.problems, world.now) != seen.job.status:
        raise RuntimeError(f"A settled job has something to do: {plan}")


def _costs() -> Costs:
    raws = [_raw(index) for index in range(_SAMPLE)]
    cache, used = _traced(lambda: _filled(raws))
    changed = [_raw(index, version=2) for index in range(_SAMPLE)]
    start = time.process_time()
    for raw in changed:
        cache.saw(raw)
    return Costs(
        pod_bytes=used / _SAMPLE,
        wire_bytes=sum(map(len, map(bytes, raws))) / _SAMPLE,
        decode_seconds=(time.process_time() - start) / _SAMPLE,
        reconcile_seconds=reconcile_seconds(2),
    )


def _raw(index: int, version: int = 1) -> msgspec.Raw:
    pod = worker_pod("default", f"job-{index // 10}", index)
    pod["metadata"] |= {
        "uid": f"4dd2ac55-3b10-4c4f-9d6a-{index:012}",
        "resourceVersion": str(version * 1_000_000 + index),
        "creationTimestamp": "2026-01-31T12:00:00Z",
    }
    return msgspec.Raw(json.dumps({**pod, "status": running_status(index)}).encode())


def _filled(raws: list[msgspec.Raw]) -> Cache[Pod]:
    cache = Cache(PODS, Pod)
    for raw in raws:
        cache.saw(raw)
    return cache


def _traced(make: Callable[[], Cache[Pod]]) -> tuple[Cache[Pod], int]:
    gc.collect()
    tracemalloc.start()
    made = make()
    gc.collect()
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return made, used


def projection(costs: Costs) -> Iterator[str]:
    """The estimates for the largest cluster."""
    yield f"cached pod: {costs.pod_bytes:,.0f} bytes; on the wire: {costs.wire_bytes:,.0f}"
    yield f"change of a pod: {costs.decode_seconds * 1e6:.0f} µs of CPU"
    yield f"{PODS_TO_HOLD:,} pods in memory: {PODS_TO_HOLD * costs.pod_bytes / 1e6:,.0f} MB"
    listed = PODS_TO_HOLD * costs.wire_bytes / 1e6
    read = PODS_TO_HOLD * costs.decode_seconds
    reconciled = JOBS_TO_HOLD * costs.reconcile_seconds
    yield f"start: read {listed:,.0f} MB, {read:.0f} s to decode, {reconciled:.0f} s to reconcile"
    changes = 1 / costs.decode_seconds
    megabytes = changes * costs.wire_bytes / 1e6
    yield f"one core: {changes:,.0f} changes of pods per second, {megabytes:.0f} MB/s"


if __name__ == "__main__":
    main()
