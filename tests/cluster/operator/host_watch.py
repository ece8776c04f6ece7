"""A launcher that prints the list of hosts whenever it changes, and when it printed what."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from mpi_operator.kube.client import LogOptions
from tests.cluster.operator.lab import Lab

WATCH = r"""
while :; do
  now=$(sh /etc/mpi/discover_hosts.sh 2>/dev/null | sort | sed 's/[.:].*//' | xargs)
  [ "$now" = "$before" ] || echo "hosts are $now"
  before=$now
  sleep 0.05
done
"""


@dataclass(frozen=True)
class Line:
    """What a launcher printed, and when, by the clock of its node, which is this machine's."""

    time: float
    text: str


def lists(name: str, workers: Iterable[int]) -> Callable[[Line], bool]:
    """Whether a line says that these are the hosts."""
    wanted = " ".join(f"{name}-worker-{index}" for index in workers)
    return lambda line: line.text == f"hosts are {wanted}".rstrip()


def after(time: float, matches: Callable[[Line], bool]) -> Callable[[Line], bool]:
    """Whether a line was printed later, too."""
    return lambda line: line.time > time and matches(line)


async def first_line(
    lab: Lab, name: str, matches: Callable[[Line], bool], seconds: float = 60
) -> Line:
    """Wait until the launcher of a job has printed such a line; the first of them."""
    found: list[Line] = []

    async def is_printed() -> bool:
        found[:] = filter(matches, await lines(lab, name))
        return bool(found)

    await lab.eventually(name, is_printed, seconds)
    return found[0]


async def lines(lab: Lab, name: str) -> list[Line]:
    """All that the running launcher of a job has printed."""
    running = [pod for pod in await lab.launchers(name) if pod["status"]["phase"] == "Running"]
    if not running:
        return []
    pod = running[0]["metadata"]["name"]
    printed = lab.client.log(pod, lab.namespace, LogOptions(timestamps=True))
    return [_parsed(line) async for line in printed]


def _parsed(line: bytes) -> Line:
    moment, _, text = line.decode(errors="replace").partition(" ")
    return Line(datetime.fromisoformat(moment).timestamp(), text.strip())
