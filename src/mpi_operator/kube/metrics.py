"""The Prometheus metrics of `kube`.

Every part takes a `Metrics`, or uses `noop_metrics` without one. Names are those of client-go where
it has the same metric, so that existing dashboards work.
"""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

# From a local answer in 1ms to the longest time that a write may take.
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """The counters of one process."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        registry = registry or CollectorRegistry()
        self._count_requests(registry)
        self._count_watches(registry)
        self._count_queues(registry)
        self._count_leadership(registry)

    def _count_requests(self, registry: CollectorRegistry) -> None:
        self.requests = Counter(
            "rest_client_requests",
            "Requests to the API server, by response code; <error> if there was no response",
            ["verb", "resource", "code"],
            registry=registry,
        )
        self.request_seconds = Histogram(
            "rest_client_request_duration_seconds",
            "Time from request to end of response (watches and logs: to its start)",
            ["verb", "resource"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.retries = Counter(
            "rest_client_request_retries",
            "Retried requests, by reason",
            ["verb", "resource", "reason"],
            registry=registry,
        )

        # Finding a child by its labels costs more than incrementing it.
        self._requests_by_code: dict[tuple[str, str, str], Counter] = {}
        self._seconds_by_verb: dict[tuple[str, str], Histogram] = {}

    def request(self, verb: str, resource: str, code: str, seconds: float) -> None:
        """Count one answer, or the lack of one."""
        counter = self._requests_by_code.get((verb, resource, code))
        if counter is None:
            counter = self.requests.labels(verb, resource, code)
            self._requests_by_code[verb, resource, code] = counter
        counter.inc()
        histogram = self._seconds_by_verb.get((verb, resource))
        if histogram is None:
            histogram = self._seconds_by_verb[verb, resource] = self.request_seconds.labels(
                verb, resource
            )
        histogram.observe(seconds)

    def _count_watches(self, registry: CollectorRegistry) -> None:
        self.watch_restarts = Counter(
            "informer_watch_restarts",
            "Reopened watches, by the reason the previous one ended",
            ["resource", "reason"],
            registry=registry,
        )
        self.relists = Counter(
            "informer_relists",
            "Complete lists of a collection, by method",
            ["resource", "method"],
            registry=registry,
        )
        self.undecodable = Counter(
            "informer_undecodable_objects",
            "Objects skipped because they cannot be decoded",
            ["resource"],
            registry=registry,
        )
        self.cached_objects = Gauge(
            "informer_cached_objects",
            "Objects in a cache",
            ["resource"],
            registry=registry,
        )

    def _count_queues(self, registry: CollectorRegistry) -> None:
        self.queue_depth = Gauge(
            "workqueue_depth", "Keys that wait for a worker", ["name"], registry=registry
        )
        self.queue_adds = Counter(
            "workqueue_adds", "Keys added, not counting duplicates", ["name"], registry=registry
        )
        self.queue_retries = Counter(
            "workqueue_retries", "Keys retried after a failure", ["name"], registry=registry
        )
        self.queue_wait_seconds = Histogram(
            "workqueue_queue_duration_seconds",
            "How long a key waits for a worker",
            ["name"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.queue_work_seconds = Histogram(
            "workqueue_work_duration_seconds",
            "How long a worker takes to process a key",
            ["name"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.events_dropped = Counter(
            "events_dropped", "Dropped events, by reason", ["reason"], registry=registry
        )

    def _count_leadership(self, registry: CollectorRegistry) -> None:
        self.is_leader = Gauge(
            "leader_election_master_status",
            "1 while this process holds the lease",
            ["name"],
            registry=registry,
        )
