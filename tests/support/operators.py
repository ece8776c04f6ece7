"""The whole operator for one job, on a cluster in memory: all of it that needs no API server."""

from datetime import datetime
from typing import Any

from prometheus_client import CollectorRegistry

from mpi_operator.build.settings import Settings
from mpi_operator.build.ssh_secret import KeyPair
from mpi_operator.controller.execute import Executor
from mpi_operator.controller.job_state import JobStates
from mpi_operator.controller.launcher_log import LogReader
from mpi_operator.controller.metrics import JobMetrics
from mpi_operator.controller.observe import Observer
from mpi_operator.controller.publish import Publisher
from mpi_operator.controller.reconcile_limiter import ReconcileLimiter
from mpi_operator.controller.reconciler import Reconciler
from mpi_operator.controller.write_limiter import WriteLimiter
from tests.support.cluster import Shelves
from tests.support.observations import PLAIN
from tests.support.scripted import Diary, ScriptedClient
from tests.support.worlds import World


class Operator:
    """A reconciler for the job of a world."""

    def __init__(self, workers: Any = 2, *, settings: Settings = PLAIN, **job: Any) -> None:
        self.settings = settings
        self.world = World(workers, settings=settings, **job)
        self.client = ScriptedClient(self.world.cluster)
        self.diary = Diary()
        self.restart()

    def restart(self) -> None:
        """Forget everything."""

        def clock() -> datetime:
            return self.world.now

        self.shelves = Shelves(self.world.cluster, self.settings)
        self.memories = memories = JobStates()
        shelves, settings = self.shelves.as_caches, self.settings
        client, series = self.client.as_client, JobMetrics(CollectorRegistry())
        self.reconciler = Reconciler(
            Observer(shelves, memories, clock),
            Executor(
                client,
                shelves,
                settings,
                memories,
                WriteLimiter(8),
                make_keys=lambda: KeyPair("private", "public"),
                clock=clock,
            ),
            Publisher(client, shelves, memories, self.diary.as_recorder, series, clock),
            LogReader(client, memories, clock),
            memories,
            settings,
            ReconcileLimiter(1),
            series,
            clock,
        )

    async def look(self) -> tuple[list[str], Any]:
        """Look once; what was asked of the server, and when to look again."""
        before = len(self.client.asked)
        wait = await self.reconciler.reconcile(self.world.key)
        return self.client.asked[before:], wait

    async def settle(self) -> Any:
        """Look until nothing is asked any more."""
        for _ in range(20):
            asked, wait = await self.look()
            if not asked:
                return wait
        raise AssertionError(f"it does not settle: {asked}")

    async def run(self) -> "Operator":
        """A job that runs."""
        await self.settle()
        self.world.all_workers_run()
        self.world.launcher_runs()
        await self.settle()
        return self
