"""Measures the webhook: conversions per second, lists of old versions, and what creations cost.

The operator is a process of its own, as in a cluster, and has no jobs to run: it only answers.
Rates are measured in turns on the same API server: with webhooks; with all versions but no webhook,
which is the best that any webhook could do; and with v2beta1 only. Read the ratios: absolute
numbers depend on the machine.

    python -m benchmarks.webhook
    python -m benchmarks.webhook --jobs 200 --rounds 1    # a quick run
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from benchmarks.goal import Goal, at_least, at_most
from benchmarks.measure import at_once
from benchmarks.progress import say
from devcluster.control_plane import ControlPlane
from devcluster.ports import free_port
from mpi_operator.api.conversion import VERSIONS, convert
from mpi_operator.api.crd import custom_resource_definition, v2beta1_only
from mpi_operator.install import webhooks
from mpi_operator.install.installation import Installation
from mpi_operator.kube import config, errors
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    NAMESPACES,
    Manifest,
    Resource,
)
from mpi_operator.webhook import conversion_review
from tests.support.mpijobs import MPIJOBS, mpijob

RESULTS = Path(".benchmarks/webhook.json")
HUB, OLD = VERSIONS[0], "v1"
V1 = Resource("kubeflow.org", OLD, "mpijobs", "MPIJob")
CONFIGURATIONS = {
    kind: Resource("admissionregistration.k8s.io", "v1", f"{kind.lower()}s", kind, namespaced=False)
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
}
HOME = "mpi-operator"
# As many as wait for each other in a script that submits a sweep.
CONCURRENCY = 16


def main() -> None:
    arguments = _arguments()
    say("Converting in this process")
    results = {f"convert {each}": conversions_per_second(each) for each in VERSIONS[1:]}
    say("Starting an API server")
    with ControlPlane() as control_plane, tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "operator.log"
        results |= asyncio.run(measured(control_plane.kubeconfig(), log, arguments))
    goals = goals_of(results)
    for name, value in results.items():
        print(f"{name:40}{value:12,.3f}")
    for goal in goals:
        print(goal)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=2))
    sys.exit(0 if all(goal.is_met for goal in goals) else 1)


def goals_of(results: dict[str, float]) -> list[Goal]:
    """The goals, with what was measured."""
    slowest = min(value for name, value in results.items() if name.startswith("convert"))
    return [
        Goal(
            "objects converted per second of CPU, in the slowest version", slowest, at_least(2000)
        ),
        Goal("seconds for a list of all v1 jobs", results["list"], at_most(1)),
        Goal(
            "creations with webhooks, relative to all versions without a webhook",
            results["ratio to the bound"],
            at_least(0.9),
        ),
    ]


def conversions_per_second(version: str, count: int = 1000, rounds: int = 5) -> float:
    """Objects per second of CPU in a long review, from the bytes of the request to the answer's.

    Half of them from the old version to the stored one, half of them back.
    """
    old = [convert(mpijob(f"job-{index}"), version) for index in range(count)]
    hub = [convert(each, HUB) for each in old]
    bodies = [_review(old, HUB), _review(hub, version)]
    start = time.process_time()
    for _ in range(rounds):
        for body in bodies:
            asyncio.run(_answer(body))
    return rounds * 2 * count / (time.process_time() - start)


def _review(objects: list[Manifest], version: str) -> bytes:
    request = {"uid": "1", "desiredAPIVersion": f"kubeflow.org/{version}", "objects": objects}
    review = {"apiVersion": conversion_review.API_VERSION, "kind": "ConversionReview"}
    return msgspec.json.encode(review | {"request": request})


async def _answer(body: bytes) -> bytes:
    request = conversion_review.decode(body)
    objects = await conversion_review.converted(request, convert)
    return msgspec.json.encode(conversion_review.success(request.uid, objects))


async def measured(kubeconfig: Path, log: Path, arguments: argparse.Namespace) -> dict[str, float]:
    """Everything that needs an API server."""
    async with HttpClient(config.load(kubeconfig=kubeconfig)) as client:
        for namespace in (HOME, "idle"):
            await client.create(NAMESPACES, {"metadata": {"name": namespace}})
        port = free_port()
        await _install(client, v2beta1_only())
        with _operator(kubeconfig, port, log):
            await _switch_on(client, port)
            results = await list_seconds(client, arguments)
            return results | await creation_rates(client, port, arguments)


async def list_seconds(client: HttpClient, arguments: argparse.Namespace) -> dict[str, float]:
    """The time for a list of v1 jobs: the first one, which fills a cache, and the others."""
    say(f"Creating {arguments.jobs} v1 jobs")
    await client.create(NAMESPACES, {"metadata": {"name": "full"}})
    jobs = [convert(mpijob(f"job-{index}", "full"), OLD) for index in range(arguments.jobs)]
    await at_once(lambda job: client.create(V1, job), jobs, CONCURRENCY)
    seconds = []
    for _ in range(1 + arguments.rounds):
        start = time.perf_counter()
        listed = await client.list(V1, "full")
        seconds.append(time.perf_counter() - start)
        if len(listed.items) != arguments.jobs:
            raise SystemExit(f"{len(listed.items)} of {arguments.jobs} jobs were listed")
    await client.delete_collection(MPIJOBS, "full")
    return {"first list": seconds[0], "list": statistics.median(seconds[1:])}


TURNS = ("webhooks", "no webhook", "v2beta1 only")


async def creation_rates(
    client: HttpClient, port: int, arguments: argparse.Namespace
) -> dict[str, float]:
    """Creations of v2beta1 jobs per second in each turn, and their ratios."""
    switches = {
        "webhooks": lambda: _switch_on(client, port),
        "no webhook": lambda: _switch_off(client, _unconverted()),
        "v2beta1 only": lambda: _switch_off(client, v2beta1_only()),
    }
    rates: dict[str, list[float]] = {turn: [] for turn in TURNS}
    for number in range(arguments.rounds):
        # Forwards, then backwards: what changes over time affects all of them.
        for turn in TURNS if number % 2 == 0 else reversed(TURNS):
            await switches[turn]()
            say(f"Creating {arguments.jobs} v2beta1 jobs: {turn}")
            namespace = f"{turn.replace(' ', '-')}-{number}"
            rates[turn].append(await _creation_rate(client, namespace, arguments.jobs))
    for turn in TURNS:
        say(f"Creations/s, {turn}: {' '.join(f'{rate:.0f}' for rate in sorted(rates[turn]))}")
    medians = {turn: statistics.median(rates[turn]) for turn in TURNS}
    return {f"creations/s, {turn}": rate for turn, rate in medians.items()} | {
        "ratio to the bound": medians["webhooks"] / medians["no webhook"],
        "ratio to v2beta1 only": medians["webhooks"] / medians["v2beta1 only"],
        "ratio of the bound to v2beta1 only": medians["no webhook"] / medians["v2beta1 only"],
    }


async def _creation_rate(client: HttpClient, namespace: str, count: int) -> float:
    """The rate without the first fifth. The jobs go again: caches are filled after each switch."""
    await client.create(NAMESPACES, {"metadata": {"name": namespace}})
    jobs = [mpijob(f"job-{index}", namespace) for index in range(count)]
    await at_once(lambda job: client.create(MPIJOBS, job), jobs[: count // 5], CONCURRENCY)
    start = time.perf_counter()
    await at_once(lambda job: client.create(MPIJOBS, job), jobs[count // 5 :], CONCURRENCY)
    seconds = time.perf_counter() - start
    await client.delete_collection(MPIJOBS, namespace)
    return (count - count // 5) / seconds


def _unconverted() -> Manifest:
    """The CRD with all versions, where the API server only changes the apiVersion of a job."""
    crd = custom_resource_definition()
    crd["spec"]["conversion"] = {"strategy": "None"}
    return crd


async def _switch_on(client: HttpClient, port: int) -> None:
    """Let the API server use the webhook on this machine, as the manifests say otherwise."""
    url = f"https://localhost:{port}"
    crd = custom_resource_definition()
    crd["spec"]["conversion"]["webhook"]["clientConfig"] = {"url": f"{url}/convert"}
    await _install(client, crd)
    for manifest in webhooks.everything(Installation()):
        if manifest["kind"] in CONFIGURATIONS:
            for each in manifest["webhooks"]:
                path = each["clientConfig"]["service"]["path"]
                each["clientConfig"] = {"url": url + path}
                each["failurePolicy"] = "Fail"  # else a webhook that is not asked looks fast
            with suppress(errors.AlreadyExists):
                await client.create(CONFIGURATIONS[manifest["kind"]], manifest)
    await _until_served(client, crd)


async def _switch_off(client: HttpClient, crd: Manifest) -> None:
    for resource in CONFIGURATIONS.values():
        with suppress(errors.NotFound):
            await client.delete(resource, "mpi-operator")
    await _install(client, crd)
    await _until_served(client, crd)


async def _install(client: HttpClient, crd: Manifest) -> None:
    """Create the CRD or replace it, and wait until it is served."""
    name = crd["metadata"]["name"]
    while True:
        try:
            found = await client.get(CUSTOM_RESOURCE_DEFINITIONS, name)
            await client.replace(CUSTOM_RESOURCE_DEFINITIONS, {**found, "spec": crd["spec"]})
            break
        except errors.NotFound:
            await client.create(CUSTOM_RESOURCE_DEFINITIONS, crd)
            break
        except errors.Conflict:
            continue
    while not await _is_served(client, MPIJOBS):  # noqa: ASYNC110
        await asyncio.sleep(0.1)


async def _until_served(client: HttpClient, crd: Manifest) -> None:
    """Wait until jobs of every version can be created, and the API server has filled its caches."""
    for version in crd["spec"]["versions"]:
        resource = Resource("kubeflow.org", version["name"], "mpijobs", "MPIJob")
        while not await _is_created(client, resource):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        await client.list(resource, "default")


async def _is_created(client: HttpClient, resource: Resource) -> bool:
    job = convert(mpijob(f"probe-{time.monotonic_ns()}"), resource.version)
    try:
        await client.create(resource, job)
    except errors.ApiError:
        return False
    return True


async def _is_served(client: HttpClient, resource: Resource) -> bool:
    try:
        await client.list(resource, "default")
    except errors.ApiError:
        return False
    return True


@contextmanager
def _operator(kubeconfig: Path, port: int, log: Path) -> Iterator[None]:
    """An operator that only answers: the jobs are in other namespaces."""
    command = [sys.executable, "-m", "mpi_operator.operator", f"--kubeconfig={kubeconfig}"]
    command += ["--namespace=idle", "--health-port=0", f"--webhook-port={port}"]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        yield
    finally:
        process.terminate()
        if code := process.wait():
            print(log.read_text(), file=sys.stderr)
            raise SystemExit(f"the operator ended with code {code}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--jobs", type=int, default=1000, help="Number of jobs (default: %(default)s)"
    )
    parser.add_argument(
        "--rounds", type=int, default=4, help="Number of rounds (default: %(default)s)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
