"""A process that leads when it may, writes while it leads, and says what happens to it.

    python -m tests.api.kube.elector_process '{"kubeconfig": …, "namespace": …, "identity": …, …}'

It prints one word per line: "ready", "leads", "lost". Every write is an object of its own, made
once and never changed, so the resourceVersions of all of them tell who wrote when.
"""

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress
from itertools import count

import msgspec

from mpi_operator.kube import config, errors
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.leader_election.elector import Elector
from mpi_operator.kube.leader_election.lease import Timing
from mpi_operator.kube.resources import CONFIG_MAPS
from mpi_operator.kube.transport import Timeouts


class Order(msgspec.Struct):
    """What the process is to do."""

    kubeconfig: str
    namespace: str
    identity: str
    timing: Timing
    unacknowledged: float = 3.0
    writers: int = 0

    def connector(self) -> Callable[[], HttpClient]:
        settings = config.load(kubeconfig=self.kubeconfig)
        timeouts = Timeouts(unacknowledged=self.unacknowledged)
        return lambda: HttpClient(settings, timeouts=timeouts)

    def elector(self, connect: Callable[[], HttpClient]) -> Elector:
        return Elector(
            connect,
            namespace=self.namespace,
            name="lock",
            identity=self.identity,
            timing=self.timing,
        )


async def main(order: Order) -> None:
    """Compete, lead, lose, and stay: a former leader's process is what is dangerous."""
    say("ready")
    connect = order.connector()
    async with order.elector(connect) as elector, connect() as client:
        await elector.acquired()
        say("leads")
        numbers = count()
        fenced = client.fenced_by(elector)
        async with asyncio.TaskGroup() as group:
            for _ in range(order.writers):
                group.create_task(write(fenced, order, numbers))
            await elector.lost()
            say("lost")
        await asyncio.Event().wait()


async def write(client: HttpClient, order: Order, numbers: "count[int]") -> None:
    """Create objects as fast as the server takes them, until the fence says no."""
    with suppress(errors.NotLeader):
        while True:
            with suppress(errors.NotSent, errors.ConnectionLost):
                await client.create(CONFIG_MAPS, note(order, next(numbers)))


def note(order: Order, number: int) -> dict[str, object]:
    name = f"{order.identity}-{number}"
    labels = {"writer": order.identity}
    return {"metadata": {"namespace": order.namespace, "name": name, "labels": labels}}


def say(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(msgspec.json.decode(sys.argv[1], type=Order)))
