"""Prometheus metrics of the webhook."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class WebhookMetrics:
    """The counters of one webhook. Any thread may scrape them."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        registry = registry or CollectorRegistry()
        self._seconds = Histogram(
            "mpi_operator_webhook_duration_seconds",
            "Time to answer a request of the API server, by endpoint and outcome",
            ["endpoint", "outcome"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._objects = Counter(
            "mpi_operator_webhook_converted_objects",
            "Objects converted to an API version",
            ["version"],
            registry=registry,
        )
        self._expiry = Gauge(
            "mpi_operator_webhook_certificate_expiry_timestamp_seconds",
            "When the certificate of the webhook expires, as Unix time",
            registry=registry,
        )

    def answered(self, endpoint: str, outcome: str, seconds: float) -> None:
        self._seconds.labels(endpoint, outcome).observe(seconds)

    def converted(self, version: str, objects: int) -> None:
        self._objects.labels(version).inc(objects)

    def certificate_expires(self, at: float) -> None:
        self._expiry.set(at)
