"""Compares `kube` with the official Python client and with bare aiohttp.

All run on the same API server, each measurement in its own process. The clients take turns, so that
a busy moment of the machine affects all of them. Read the ratios: absolute numbers depend on the
machine.

    make bench
    python -m benchmarks.kube --pods 500 --rounds 1    # a quick run
"""

import argparse
import asyncio
import importlib
import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from benchmarks.goal import Goal, at_least, at_most
from benchmarks.kubelet import let_run
from benchmarks.measure import Cost, Task
from benchmarks.pods import worker_pod
from benchmarks.progress import say
from devcluster.control_plane import ControlPlane
from mpi_operator.kube import config
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import NAMESPACES, PODS

TASKS = ("create", "list_pods", "watch", "cache")
CLIENTS = ("ours", "bare", "official")
RESULTS = Path(".benchmarks/kube.json")

Results = dict[str, dict[str, Cost]]


def main() -> None:
    arguments = _arguments()
    if arguments.measure:
        print(json.dumps(asdict(_measure(*arguments.measure))))
        return
    say("Starting an API server")
    with ControlPlane() as control_plane:
        results = asyncio.run(compare(str(control_plane.kubeconfig()), arguments))
    goals = goals_of(results)
    report(results, goals)
    sys.exit(0 if all(goal.is_met for goal in goals) else 1)


async def compare(kubeconfig: str, arguments: argparse.Namespace) -> Results:
    """The median cost of every task for every client_name."""
    async with HttpClient(config.load(kubeconfig=kubeconfig)) as client:
        await client.create(NAMESPACES, {"metadata": {"name": "full"}})
        say(f"Creating {arguments.pods} pods")
        await fill(client, "full", arguments.pods)
        costs = [
            (
                task,
                client_name,
                await one_round(client, kubeconfig, task, client_name, number, arguments),
            )
            for task in TASKS
            for number in range(arguments.rounds)
            for client_name in CLIENTS
        ]
    return {
        task: {
            client_name: _median([cost for t, c, cost in costs if (t, c) == (task, client_name)])
            for client_name in CLIENTS
        }
        for task in TASKS
    }


async def one_round(
    client: HttpClient,
    kubeconfig: str,
    task: str,
    client_name: str,
    number: int,
    arguments: argparse.Namespace,
) -> Cost:
    say(f"{task}: {client_name}, round {number + 1} of {arguments.rounds}")
    namespace = f"{client_name}-{number}" if task == "create" else "full"
    if task == "create":
        await client.create(NAMESPACES, {"metadata": {"name": namespace}})
    command = [sys.executable, "-m", "benchmarks.kube", "--measure", client_name, task]
    command += [kubeconfig, namespace, str(arguments.pods)]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    if task == "create":
        await client.delete_collection(PODS, namespace)
    return Cost(**json.loads(done.stdout))


async def fill(client: HttpClient, namespace: str, count: int) -> None:
    """Create pods and mark them as running, as a kubelet would."""

    async def make(index: int) -> None:
        pod = await client.create(PODS, worker_pod(namespace, f"job-{index // 64}", index))
        await let_run(client, namespace, pod["metadata"]["name"], index)

    await asyncio.gather(*map(make, range(count)))


def goals_of(results: Results) -> list[Goal]:
    """The goals, with what was measured."""
    create, cache = results["create"], results["cache"]
    return [
        Goal(
            "creates per second with 64 in parallel, relative to bare aiohttp",
            create["bare"].wall_seconds / create["ours"].wall_seconds,
            at_least(0.95),
        ),
        Goal(
            "CPU per create of bare aiohttp with json, relative to ours",
            create["bare"].cpu_seconds / create["ours"].cpu_seconds,
            at_least(0.95),
        ),
        Goal(
            "CPU per create of the official client, relative to ours",
            create["official"].cpu_seconds / create["ours"].cpu_seconds,
            at_least(5),
        ),
        Goal(
            "KB per cached pod",
            cache["ours"].bytes / cache["ours"].count / 1000,
            at_most(2),
        ),
    ]


def report(results: Results, goals: list[Goal]) -> None:
    """Print the table and the goals, and store the numbers."""
    print(f"\n{'':10}{'':10}{'per second':>12}{'CPU µs each':>13}{'bytes each':>12}")
    for task, costs in results.items():
        for client_name, cost in costs.items():
            print(f"{task:10}{client_name:10}{''.join(_columns(cost))}")
    print("")
    for goal in goals:
        print(goal)
    RESULTS.parent.mkdir(exist_ok=True)
    plain = {
        task: {name: asdict(cost) for name, cost in costs.items()}
        for task, costs in results.items()
    }
    RESULTS.write_text(json.dumps(plain, indent=2))
    say(f"Wrote {RESULTS}")


def _columns(cost: Cost) -> Iterator[str]:
    yield f"{cost.count / cost.wall_seconds:12,.0f}" if cost.wall_seconds else f"{'':12}"
    yield f"{cost.cpu_seconds / cost.count * 1e6:13,.0f}" if cost.cpu_seconds else f"{'':13}"
    yield f"{cost.bytes / cost.count:12,.0f}" if cost.bytes else f"{'':12}"


def _measure(client_name: str, task: str, kubeconfig: str, namespace: str, count: str) -> Cost:
    module = importlib.import_module(f"benchmarks.clients.{client_name}")
    cost = getattr(module, task)(Task(kubeconfig, namespace, int(count)))
    measured: Cost = asyncio.run(cost) if asyncio.iscoroutine(cost) else cost
    return measured


def _median(costs: list[Cost]) -> Cost:
    return Cost(
        count=costs[0].count,
        wall_seconds=statistics.median(cost.wall_seconds for cost in costs),
        cpu_seconds=statistics.median(cost.cpu_seconds for cost in costs),
        bytes=int(statistics.median(cost.bytes for cost in costs)),
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--pods", type=int, default=2000, help="Number of pods (default: %(default)s)"
    )
    parser.add_argument(
        "--rounds", type=int, default=3, help="Number of rounds (default: %(default)s)"
    )
    parser.add_argument("--measure", nargs=5, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
