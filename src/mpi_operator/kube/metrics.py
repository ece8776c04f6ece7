"""What the parts of `kube` count, in Prometheus' terms.

Every part takes a `Metrics` and counts into it; without one it counts into a registry that nobody
reads. Names follow client-go's where it has the same thing, so that existing dashboards fit.
"""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

# From a local answer in a millisecond to the longest a write may take.
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
            "Answers of the API server; code is <error> where none came",
            ["verb", "resource", "code"],
            registry=registry,
        )
        self.request_seconds = Histogram(
            "rest_client_request_duration_seconds",
            "From sending a request to the whole answer, of watches and logs to its beginning",
            ["verb", "resource"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.retries = Counter(
            "rest_client_request_retries",
            "Requests sent again, by why",
            ["verb", "resource", "reason"],
            registry=registry,
        )

        # Looking a child up by its labels costs more than counting with it.
        self._requests_by_code: dict[tuple[str, str, str], Counter] = {}
        self._seconds_by_verb: dict[tuple[str, str], Histogram] = {}

    def request(self, verb: str, resource: str, code: str, seconds: float) -> None:
        """Count one answer, or its absence."""
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
            "Watches opened again where the last one ended, by why it ended",
            ["resource", "reason"],
            registry=registry,
        )
        self.relists = Counter(
            "informer_relists",
            "Complete reads of a collection, by how it was read",
            ["resource", "method"],
            registry=registry,
        )
        self.undecodable = Counter(
            "informer_undecodable_objects",
            "Objects left out of a cache because they do not fit their type",
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
            "workqueue_adds", "Keys added, duplicates not counted", ["name"], registry=registry
        )
        self.queue_retries = Counter(
            "workqueue_retries", "Keys added again after a failure", ["name"], registry=registry
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
            "How long a worker is busy with a key",
            ["name"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.events_dropped = Counter(
            "events_dropped", "Events never sent, by why", ["reason"], registry=registry
        )

    def _count_leadership(self, registry: CollectorRegistry) -> None:
        self.is_leader = Gauge(
            "leader_election_master_status",
            "1 while this process holds the lease",
            ["name"],
            registry=registry,
        )
