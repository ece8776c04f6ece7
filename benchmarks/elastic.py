"""Compares how soon an elastic job follows a change of its size, with our operator and the Go one.

    python -m benchmarks.elastic               # 3 rounds of each; needs root: it starts nodes
    python -m benchmarks.elastic --rounds 1    # a quick run

The job is that of `examples/elastic`, with real pods on two nodes: it grows from two workers to
three and shrinks again. Times count from the moment at which the API server has accepted the new
size: until `/etc/mpi/discover_hosts.sh` in the launcher prints the new list, and until a round of
training has begun on exactly those workers. Rounds that had to be repeated are counted, too. Both
operators run as processes of this machine, one at a time. Exits with 1 if a goal is missed.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import yaml

from benchmarks.goal import Wanted, at_most
from benchmarks.operators import machine
from benchmarks.operators.comparison import Comparison, absolute, against
from benchmarks.operators.report import Results, report
from benchmarks.operators.samples import Sample, Samples, comparable
from benchmarks.operators.subjects import GO_PROGRAM, OURS, TUNED, Subject, turns
from benchmarks.operators.testbed import Testbed, new_testbed
from benchmarks.progress import say
from devcluster import binaries, image_builds
from devcluster.cluster import Cluster
from mpi_operator.kube.resources import Manifest
from tests.cluster.operator.host_watch import WATCH, Line, after, first_line, lines, lists
from tests.cluster.operator.lab import Lab
from tests.support.mpijobs import changed

_EXAMPLE = Path(__file__).parents[1] / "examples/elastic/elastic.yaml"
_NAME = "elastic"
_FEW, _MANY = range(2), range(3)
_SIZES = {"grows": _MANY, "shrinks": _FEW}
_TIMEOUT = 240.0
# Beside the program, it says what the script prints.
_COMMAND = f"{WATCH.strip()} &\nexec python3 elastic.py"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit code says whether all goals are met."""
    options = _parser().parse_args(arguments)
    binaries.provide([GO_PROGRAM])
    archives = image_builds.provide(["elastic"])
    cluster = Cluster(nodes=2, audit=True)
    found = asyncio.run(_measure(cluster, list(archives.values()), options.rounds))
    return report("elastic", found, machine.facts())


async def _measure(cluster: Cluster, archives: list[Path], rounds: int) -> Results:
    found = Results()
    async with new_testbed(cluster) as testbed:
        await asyncio.to_thread(cluster.load, *archives)
        samples = [
            sample
            for number in range(rounds)
            for subject in turns((OURS, TUNED), number)
            for sample in await _round(testbed, subject, number)
        ]
    for case in _SIZES:
        found.samples[case] = [each for each in samples if each.case == case]
        found.comparisons[case] = compare(comparable(found.samples[case]), case)
    return found


async def _round(testbed: Testbed, subject: Subject, number: int) -> list[Sample]:
    environment, samples = await testbed.environment(), []
    async with testbed.operator(subject), testbed.namespace() as namespace:
        lab = Lab(testbed.client, namespace)
        await lab.submit(_job())
        await first_line(lab, _NAME, _has_begun(_FEW), _TIMEOUT)
        for case, hosts in _SIZES.items():
            values = await _scaled(lab, hosts)
            shown = ", ".join(f"{name} {value:.2f}" for name, value in values.items())
            say(f"round {number + 1}, {subject.name}, it {case}: {shown}")
            samples.append(Sample(subject.name, case, number, values, environment))
    return samples


async def _scaled(lab: Lab, hosts: Sequence[int]) -> dict[str, float]:
    await lab.scale(_NAME, len(hosts))
    accepted = time.time()
    listed = await first_line(lab, _NAME, after(accepted, lists(_NAME, hosts)), _TIMEOUT)
    begun = await first_line(lab, _NAME, after(accepted, _has_begun(hosts)), _TIMEOUT)
    repeated = sum(
        each.text.endswith("is repeated") and accepted < each.time <= begun.time
        for each in await lines(lab, _NAME)
    )
    return {"list": listed.time - accepted, "step": begun.time - accepted, "lost": float(repeated)}


def _has_begun(hosts: Iterable[int]) -> Callable[[Line], bool]:
    wanted = ", ".join(f"{_NAME}-worker-{each}" for each in hosts)
    return lambda line: line.text.endswith(f"begins on {wanted}")


def _job() -> Manifest:
    """The example, with a launcher that does not end by itself and says what it sees."""
    job: Manifest = yaml.safe_load(_EXAMPLE.read_text())
    container = "spec.mpiReplicaSpecs.Launcher.template.spec.containers.0"
    settings = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    ours = [each for each in settings["env"] if each["name"] != "ROUNDS"]
    job = changed(job, f"{container}.env", [*ours, {"name": "ROUNDS", "value": "1000000"}])
    return changed(job, f"{container}.command", ["sh", "-c", _COMMAND])


def compare(samples: Samples, case: str) -> list[Comparison]:
    """The times, and what was repeated."""
    until_listed = f"the job {case}: the launcher's list is new after"
    compared = [
        _absolute(samples, case, until_listed, "list", "s", at_most(3)),
        against(
            samples,
            TUNED.name,
            what=until_listed,
            value="list",
            unit="s",
            case=case,
            wanted=at_most(0.2),
        ),
        against(
            samples,
            TUNED.name,
            what=f"the job {case}: a round begins on the new workers after",
            value="step",
            unit="s",
            case=case,
            wanted=at_most(0.3),
        ),
        _absolute(samples, case, f"the job {case}: rounds repeated", "lost", "", at_most(1)),
    ]
    return [each for each in compared if each is not None]


def _absolute(
    samples: Samples, case: str, what: str, value: str, unit: str, wanted: Wanted
) -> Comparison | None:
    return absolute(
        samples, TUNED.name, what=what, value=value, unit=unit, case=case, wanted=wanted
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.elastic",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=3, help="Rounds of each (default: 3)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
