"""Prometheus metrics about jobs and reconciles.

Five names are those of the Go operator, so that dashboards and alerts keep working. A status is
counted after it was stored.
"""

from collections.abc import Callable
from contextlib import suppress

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class JobMetrics:
    """The counters of one operator."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        registry = registry or CollectorRegistry()
        self._count_jobs(registry)
        self._count_work(registry)

    def _count_jobs(self, registry: CollectorRegistry) -> None:
        self._created = Counter("mpi_operator_jobs_created", "Jobs created", registry=registry)
        self._successful = Counter(
            "mpi_operator_jobs_successful", "Jobs that succeeded", registry=registry
        )
        self._failed = Counter("mpi_operator_jobs_failed", "Jobs that failed", registry=registry)
        self._restarted_workers = Counter(
            "mpi_operator_workers_restarted",
            "Worker pods replaced while their job was running",
            registry=registry,
        )
        self._info = Gauge(
            "mpi_operator_job_info",
            "1 for each unfinished job that has a launcher, with the name of that Job",
            ["launcher", "namespace"],
            registry=registry,
        )

    def _count_work(self, registry: CollectorRegistry) -> None:
        self._is_leader = Gauge(
            "mpi_operator_is_leader",
            "1 while this process is the leader, 0 while it stands by",
            registry=registry,
        )
        self._reconcile_seconds = Histogram(
            "mpi_operator_reconcile_duration_seconds",
            "Time to reconcile a job, by outcome",
            ["outcome"],
            buckets=_SECONDS,
            registry=registry,
        )

    def job_created(self) -> None:
        self._created.inc()

    def job_succeeded(self) -> None:
        self._successful.inc()

    def job_failed(self) -> None:
        self._failed.inc()

    def job_restarted_worker(self) -> None:
        self._restarted_workers.inc()

    def job_info(self, namespace: str, launcher: str) -> None:
        """Report a job for as long as it exists."""
        self._info.labels(launcher=launcher, namespace=namespace).set(1)

    def forget_job(self, namespace: str, launcher: str) -> None:
        """Stop reporting it: else the series of a year of jobs would stay."""
        with suppress(KeyError):  # never reported
            self._info.remove(launcher, namespace)

    def reconcile(self, outcome: str, seconds: float) -> None:
        self._reconcile_seconds.labels(outcome).observe(seconds)

    def set_leader(self, is_leader: Callable[[], bool]) -> None:
        """Report whether this process leads, asked at each scrape."""
        self._is_leader.set_function(lambda: float(is_leader()))
