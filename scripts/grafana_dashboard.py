"""The Grafana dashboard: `make generate` writes it as JSON.

The variable `job` is what Prometheus calls the operator; its values come from a metric that only
this operator has, because other programs export those of Kubernetes clients, too.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mpi_operator.install.installation import NAME

_WIDTH = 24  # columns of Grafana's grid
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_OURS = 'job=~"$job"'
_RECONCILE_COUNT = "mpi_operator_reconcile_duration_seconds_count"
_FAILED = 'outcome="error"'
_CERTIFICATE = "mpi_operator_webhook_certificate_expiry_timestamp_seconds"


@dataclass(frozen=True)
class Panel:
    """One panel: queries by their legend. A legend may contain labels in double braces."""

    title: str
    meaning: str
    queries: dict[str, str]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8
    height: int = 8


def _rate(metric: str, by: str = "", more: str = "") -> str:
    selector = ",".join(filter(None, (_OURS, more)))
    labels = f" by ({by})" if by else ""
    return f"sum{labels} (rate({metric}{{{selector}}}[$__rate_interval]))"


def _quantile(quantile: float, metric: str, by: str = "", more: str = "") -> str:
    labels = ", ".join(filter(None, ("le", by)))
    return f"histogram_quantile({quantile}, {_rate(f'{metric}_bucket', labels, more)})"


def _stat(title: str, meaning: str, query: str, unit: str = "short") -> Panel:
    return Panel(title, meaning, {"": query}, unit, kind="stat", width=4, height=4)


_STATUS = (
    _stat(
        "Jobs",
        "Unfinished jobs that have a launcher",
        f"count(max by (namespace, launcher) (mpi_operator_job_info{{{_OURS}}})) or vector(0)",
    ),
    _stat(
        "Replicas",
        "Operators that are scraped",
        f"count(mpi_operator_is_leader{{{_OURS}}}) or vector(0)",
    ),
    _stat(
        "Leaders",
        "Operators that lead: 1 is right",
        f"sum(mpi_operator_is_leader{{{_OURS}}}) or vector(0)",
    ),
    _stat("Waiting", "Jobs that wait for a reconcile", f"sum(workqueue_depth{{{_OURS}}})"),
    _stat(
        "Failed reconciles",
        "Share of reconciles that failed",
        f"({_rate(_RECONCILE_COUNT, more=_FAILED)} or vector(0)) / {_rate(_RECONCILE_COUNT)}",
        "percentunit",
    ),
    _stat(
        "Certificate",
        "Time until the certificate of the webhook expires",
        f"min({_CERTIFICATE}{{{_OURS}}} > 0) - time()",
        "s",
    ),
)

_JOBS = (
    Panel(
        "Jobs per minute",
        "Jobs that were created and that ended",
        {
            "created": f"60 * {_rate('mpi_operator_jobs_created_total')}",
            "succeeded": f"60 * {_rate('mpi_operator_jobs_successful_total')}",
            "failed": f"60 * {_rate('mpi_operator_jobs_failed_total')}",
        },
    ),
    Panel(
        "Jobs by namespace",
        "Unfinished jobs that have a launcher",
        {
            "{{namespace}}": "count by (namespace) (max by (namespace, launcher)"
            f" (mpi_operator_job_info{{{_OURS}}}))"
        },
    ),
    Panel(
        "Replaced workers per minute",
        "Workers that failed or were lost while their job ran",
        {"replaced": f"60 * {_rate('mpi_operator_workers_restarted_total')}"},
    ),
)

_RECONCILES = (
    Panel(
        "Reconciles per second",
        "By outcome: done, later (something is still to come) or error",
        {"{{outcome}}": _rate(_RECONCILE_COUNT, "outcome")},
        "ops",
    ),
    Panel(
        "Duration of a reconcile",
        "Including its requests to the API server",
        {
            "median": _quantile(0.5, "mpi_operator_reconcile_duration_seconds"),
            "99 %": _quantile(0.99, "mpi_operator_reconcile_duration_seconds"),
        },
        "s",
    ),
    Panel(
        "Wait before a reconcile",
        "How long jobs wait until the operator works on them",
        {
            "median": _quantile(0.5, "workqueue_queue_duration_seconds"),
            "99 %": _quantile(0.99, "workqueue_queue_duration_seconds"),
        },
        "s",
    ),
    Panel(
        "Queue",
        "Jobs that wait, by replica",
        {"{{instance}}": f"sum by (instance) (workqueue_depth{{{_OURS}}})"},
    ),
    Panel(
        "Additions to the queue per second",
        "Changes that cause a reconcile, and reconciles that are tried again",
        {
            "added": _rate("workqueue_adds_total"),
            "tried again": _rate("workqueue_retries_total"),
        },
        "ops",
    ),
    Panel(
        "Work per second",
        "Seconds of reconciles per second: how many run at once",
        {"reconciles": _rate("workqueue_work_duration_seconds_sum")},
    ),
)

_REQUESTS = (
    Panel(
        "Requests per second, by response",
        "<error>: there was no response",
        {"{{code}}": _rate("rest_client_requests_total", "code")},
        "reqps",
    ),
    Panel(
        "Requests per second, by kind",
        "What the operator asks the API server",
        {"{{verb}} {{resource}}": _rate("rest_client_requests_total", "verb, resource")},
        "reqps",
    ),
    Panel(
        "Duration of requests, 99 %",
        "By verb. For watches and logs, until the response begins",
        {"{{verb}}": _quantile(0.99, "rest_client_request_duration_seconds", "verb")},
        "s",
    ),
    Panel(
        "Retried requests per second",
        "By reason",
        {"{{reason}}": _rate("rest_client_request_retries_total", "reason")},
        "reqps",
    ),
    Panel(
        "Reopened watches per second",
        "By reason. An end of a watch is normal every few minutes",
        {"{{resource}}: {{reason}}": _rate("informer_watch_restarts_total", "resource, reason")},
        "ops",
    ),
    Panel(
        "Complete lists per second",
        "At the start, and when a watch cannot be resumed",
        {"{{resource}}: {{method}}": _rate("informer_relists_total", "resource, method")},
        "ops",
    ),
)

_CACHES = (
    Panel(
        "Cached objects",
        "What a replica keeps in memory, by kind",
        {"{{resource}}": f"max by (resource) (informer_cached_objects{{{_OURS}}})"},
    ),
    Panel(
        "Skipped objects",
        "Objects that cannot be decoded. The operator does not manage them",
        {"{{resource}}": f"max by (resource) (informer_undecodable_objects_total{{{_OURS}}})"},
    ),
    Panel(
        "Dropped events per minute",
        "Events of jobs that were not recorded, by reason",
        {"{{reason}}": f"60 * {_rate('events_dropped_total', 'reason')}"},
    ),
)

_WEBHOOK = (
    Panel(
        "Calls per second",
        "By endpoint and outcome. An error is a bug; a failed conversion is that of one object",
        {
            "{{endpoint}}: {{outcome}}": _rate(
                "mpi_operator_webhook_duration_seconds_count", "endpoint, outcome"
            )
        },
        "reqps",
    ),
    Panel(
        "Duration of calls, 99 %",
        "The API server waits that long",
        {"{{endpoint}}": _quantile(0.99, "mpi_operator_webhook_duration_seconds", "endpoint")},
        "s",
    ),
    Panel(
        "Converted objects per second",
        "By the API version to which they were converted",
        {"{{version}}": _rate("mpi_operator_webhook_converted_objects_total", "version")},
        "ops",
    ),
)

_PROCESS = (
    Panel(
        "CPU",
        "Cores in use, by replica",
        {"{{instance}}": _rate("process_cpu_seconds_total", "instance")},
    ),
    Panel(
        "Memory",
        "Resident memory, by replica",
        {"{{instance}}": f"process_resident_memory_bytes{{{_OURS}}}"},
        "bytes",
    ),
    Panel(
        "Leader",
        "1 for the replica that leads",
        {"{{instance}}": f"mpi_operator_is_leader{{{_OURS}}}"},
    ),
)

ROWS = {
    "Status": _STATUS,
    "Jobs": _JOBS,
    "Reconciles": _RECONCILES,
    "API server": _REQUESTS,
    "Caches and events": _CACHES,
    "Webhook": _WEBHOOK,
    "Process": _PROCESS,
}


def dashboard() -> dict[str, Any]:
    """The dashboard as Grafana imports it."""
    return {
        "uid": NAME,
        "title": "MPI Operator",
        "tags": ["kubernetes", "mpi"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": _variables()},
        "panels": list(_panels()),
    }


def _variables() -> list[dict[str, Any]]:
    query = "label_values(mpi_operator_is_leader, job)"
    return [
        {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
        {
            "name": "job",
            "label": "Job",
            "type": "query",
            "datasource": _SOURCE,
            "query": {"query": query, "refId": "job"},
            "definition": query,
            "refresh": 2,  # when the time range changes
            "includeAll": True,
            "multi": True,
            "current": {"text": "All", "value": "$__all"},
        },
    ]


def _panels() -> Iterator[dict[str, Any]]:
    """The panels, from left to right and from top to bottom."""
    number, top = 0, 0
    for title, panels in ROWS.items():
        number += 1
        place = {"x": 0, "y": top, "w": _WIDTH, "h": 1}
        yield {"id": number, "type": "row", "title": title, "gridPos": place, "panels": []}
        top, left = top + 1, 0
        for panel in panels:
            if left + panel.width > _WIDTH:
                top, left = top + panel.height, 0
            number += 1
            yield _panel(panel, number, left, top)
            left += panel.width
        top += panels[-1].height


def _panel(panel: Panel, number: int, left: int, top: int) -> dict[str, Any]:
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.meaning,
        "datasource": _SOURCE,
        "gridPos": {"x": left, "y": top, "w": panel.width, "h": panel.height},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + position),
                "datasource": _SOURCE,
                "expr": query,
                "legendFormat": legend,
            }
            for position, (legend, query) in enumerate(panel.queries.items())
        ],
    }


def text() -> str:
    return json.dumps(dashboard(), indent=2, ensure_ascii=False) + "\n"


FILES = {
    "deploy/monitoring/grafana-dashboard.json": text,
    "deploy/chart/files/grafana-dashboard.json": text,
}
