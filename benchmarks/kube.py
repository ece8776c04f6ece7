"""How `kube` compares with the official Python client and with bare aiohttp.

All on the same API server, in one run, each measurement in a process of its own, the contenders
taking turns so that a busy moment of the machine hits each of them. Read the ratios: the absolute
numbers belong to the machine.

    make bench
    python -m benchmarks.kube --pods 500 --rounds 1    # a quick look
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
CONTENDERS = ("ours", "bare", "official")
RESULTS = Path(".benchmarks/kube.json")

Results = dict[str, dict[str, Cost]]


def main() -> None:
    arguments = _arguments()
    if arguments.measure:
        print(json.dumps(asdict(_measure(*arguments.measure))))
        return
    say("starting an API server")
    with ControlPlane() as control_plane:
        results = asyncio.run(compare(str(control_plane.kubeconfig()), arguments))
    goals = goals_of(results)
    report(results, goals)
    sys.exit(0 if all(goal.is_met for goal in goals) else 1)


async def compare(kubeconfig: str, arguments: argparse.Namespace) -> Results:
    """The median cost of every task for every contender."""
    async with HttpClient(config.load(kubeconfig=kubeconfig)) as client:
        await client.create(NAMESPACES, {"metadata": {"name": "full"}})
        say(f"making {arguments.pods} pods to read")
        await fill(client, "full", arguments.pods)
        costs = [
            (
                task,
                contender,
                await one_round(client, kubeconfig, task, contender, number, arguments),
            )
            for task in TASKS
            for number in range(arguments.rounds)
            for contender in CONTENDERS
        ]
    return {
        task: {
            contender: _median([cost for t, c, cost in costs if (t, c) == (task, contender)])
            for contender in CONTENDERS
        }
        for task in TASKS
    }


async def one_round(
    client: HttpClient,
    kubeconfig: str,
    task: str,
    contender: str,
    number: int,
    arguments: argparse.Namespace,
) -> Cost:
    say(f"{task}: {contender}, round {number + 1} of {arguments.rounds}")
    namespace = f"{contender}-{number}" if task == "create" else "full"
    if task == "create":
        await client.create(NAMESPACES, {"metadata": {"name": namespace}})
    command = [sys.executable, "-m", "benchmarks.kube", "--measure", contender, task]
    command += [kubeconfig, namespace, str(arguments.pods)]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    if task == "create":
        await client.delete_collection(PODS, namespace)
    return Cost(**json.loads(done.stdout))


async def fill(client: HttpClient, namespace: str, count: int) -> None:
    """Make pods and say that they run, as a kubelet would."""

    async def make(index: int) -> None:
        pod = await client.create(PODS, worker_pod(namespace, f"job-{index // 64}", index))
        await let_run(client, namespace, pod["metadata"]["name"], index)

    await asyncio.gather(*map(make, range(count)))


def goals_of(results: Results) -> list[Goal]:
    """What we claim, and what was measured."""
    create, cache = results["create"], results["cache"]
    return [
        Goal(
            "creates per second, 64 at a time, as a part of what bare aiohttp does",
            create["bare"].wall_seconds / create["ours"].wall_seconds,
            at_least(0.95),
        ),
        Goal(
            "CPU of bare aiohttp with json per create, in ours",
            create["bare"].cpu_seconds / create["ours"].cpu_seconds,
            at_least(0.95),
        ),
        Goal(
            "CPU of the official client per create, in ours",
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
    """Print the table and the goals, and keep the numbers."""
    print(f"\n{'':10}{'':10}{'per second':>12}{'CPU µs each':>13}{'bytes each':>12}")
    for task, costs in results.items():
        for contender, cost in costs.items():
            print(f"{task:10}{contender:10}{''.join(_columns(cost))}")
    print("")
    for goal in goals:
        print(goal)
    RESULTS.parent.mkdir(exist_ok=True)
    plain = {
        task: {who: asdict(cost) for who, cost in costs.items()} for task, costs in results.items()
    }
    RESULTS.write_text(json.dumps(plain, indent=2))
    say(f"the numbers are in {RESULTS}")


def _columns(cost: Cost) -> Iterator[str]:
    yield f"{cost.count / cost.wall_seconds:12,.0f}" if cost.wall_seconds else f"{'':12}"
    yield f"{cost.cpu_seconds / cost.count * 1e6:13,.0f}" if cost.cpu_seconds else f"{'':13}"
    yield f"{cost.bytes / cost.count:12,.0f}" if cost.bytes else f"{'':12}"


def _measure(contender: str, task: str, kubeconfig: str, namespace: str, count: str) -> Cost:
    module = importlib.import_module(f"benchmarks.contenders.{contender}")
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
    parser.add_argument("--pods", type=int, default=2000, help="how many (default: %(default)s)")
    parser.add_argument(
        "--rounds", type=int, default=3, help="medians of so many (default: %(default)s)"
    )
    parser.add_argument("--measure", nargs=5, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
