"""The Prometheus alerts: `make generate` writes them as a rules file and as a PrometheusRule.

Metrics of `kube` have the names that every Kubernetes client uses. So an alert selects the series
of this operator: by the name of its queue, or by a metric of its own of the same process (`OURS`).
Sums keep the labels of the scrape that tell installations apart.
"""

from dataclasses import dataclass
from typing import Any

import yaml

from mpi_operator.install.installation import NAME, Installation, Manifest
from mpi_operator.install.yaml_text import yaml_text

RUNBOOK = "docs/how-to/monitor-the-operator.md"

OURS = "and on (job, instance) mpi_operator_is_leader"
_INSTALLATION = "job, namespace"
_RECONCILES = "mpi_operator_reconcile_duration_seconds_count"
_FAILED_RECONCILES = f'{_RECONCILES}{{outcome="error"}}'
_QUEUE_WAIT = 'workqueue_queue_duration_seconds_bucket{name="mpijobs"}'
_REQUESTS = "rest_client_requests_total"
_FAILED_REQUESTS = f'{_REQUESTS}{{code=~"5..|429|<error>"}}'
_SKIPPED = "informer_undecodable_objects_total"
_WEBHOOK = "mpi_operator_webhook_duration_seconds"
_FAILED_CALLS = f'{_WEBHOOK}_count{{outcome=~"error|failed"}}'
_CERTIFICATE = "mpi_operator_webhook_certificate_expiry_timestamp_seconds"


@dataclass(frozen=True)
class Alert:
    """One alert. Its section in the runbook has its name."""

    name: str
    query: str
    lasts: str
    severity: str
    summary: str
    description: str

    @property
    def rule(self) -> Manifest:
        return {
            "alert": self.name,
            "expr": self.query,
            "for": self.lasts,
            "labels": {"severity": self.severity},
            "annotations": {
                "summary": self.summary,
                "description": self.description,
                "runbook": f"{RUNBOOK}#{self.name.lower()}",
            },
        }


def _rate(series: str, window: str = "5m", by: str = _INSTALLATION) -> str:
    return f"sum by ({by}) (rate({series}[{window}]))"


def _ended(how: str) -> str:
    return f"sum by ({_INSTALLATION}) (increase(mpi_operator_jobs_{how}_total[1h]))"


ALERTS = (
    Alert(
        "MPIOperatorAbsent",
        "absent(mpi_operator_is_leader)",
        "10m",
        "critical",
        "No MPI operator is scraped",
        "No MPI operator has been scraped for 10 minutes. Running jobs continue, but new jobs do"
        " not start, and versions other than v2beta1 cannot be read.",
    ),
    Alert(
        "MPIOperatorNoLeader",
        f"sum by ({_INSTALLATION}) (mpi_operator_is_leader) == 0",
        "5m",
        "critical",
        "No MPI operator leads",
        "Operators of {{ $labels.job }} run, but none of them has led for 5 minutes. Running jobs"
        " continue, but new jobs do not start.",
    ),
    Alert(
        "MPIOperatorRestarts",
        f"changes(process_start_time_seconds[1h]) > 3 {OURS}",
        "0m",
        "warning",
        "An MPI operator restarts often",
        "The MPI operator {{ $labels.instance }} was restarted {{ $value }} times within an hour.",
    ),
    Alert(
        "MPIOperatorReconcileErrors",
        f"{_rate(_FAILED_RECONCILES)} / {_rate(_RECONCILES)} > 0.1",
        "15m",
        "warning",
        "Reconciles of MPIJobs fail",
        "{{ $value | humanizePercentage }} of all reconciles of {{ $labels.job }} fail.",
    ),
    Alert(
        "MPIOperatorQueueSlow",
        f"histogram_quantile(0.9, {_rate(_QUEUE_WAIT, '10m', f'le, {_INSTALLATION}')}) > 10",
        "15m",
        "warning",
        "MPIJobs wait for the operator",
        "One in ten reconciles of {{ $labels.job }} waits longer than"
        " {{ $value | humanizeDuration }}.",
    ),
    Alert(
        "MPIOperatorRequestErrors",
        f"{_rate(_FAILED_REQUESTS, by='job, instance')} / {_rate(_REQUESTS, by='job, instance')}"
        f" > 0.05 {OURS}",
        "15m",
        "warning",
        "Requests of the MPI operator fail",
        "{{ $value | humanizePercentage }} of the requests of {{ $labels.instance }} to the API"
        " server fail, or are rejected because it is overloaded.",
    ),
    Alert(
        "MPIOperatorUndecodableObjects",
        # The second part finds a series that began with its first object: nothing increased then.
        f"(increase({_SKIPPED}[30m]) > 0 or ({_SKIPPED} unless {_SKIPPED} offset 30m)) {OURS}",
        "0m",
        "warning",
        "The MPI operator skips malformed objects",
        "{{ $labels.instance }} skips {{ $labels.resource }} that it cannot decode. It does"
        " not manage them.",
    ),
    Alert(
        "MPIOperatorWebhookErrors",
        f"{_rate(_FAILED_CALLS, by=f'{_INSTALLATION}, endpoint')} > 0",
        "10m",
        "warning",
        "The webhook of the MPI operator fails",
        "Requests to /{{ $labels.endpoint }} of {{ $labels.job }} fail. MPIJobs may not be readable"
        " in every API version.",
    ),
    Alert(
        "MPIOperatorWebhookSlow",
        "histogram_quantile(0.99,"
        f" {_rate(f'{_WEBHOOK}_bucket', by=f'le, {_INSTALLATION}, endpoint')}) > 1",
        "15m",
        "warning",
        "The webhook of the MPI operator is slow",
        "One in a hundred requests to /{{ $labels.endpoint }} of {{ $labels.job }} takes longer"
        " than {{ $value | humanizeDuration }}. The API server gives up after 5 seconds.",
    ),
    Alert(
        "MPIOperatorCertificateExpires",
        f"{_CERTIFICATE} - time() < 14 * 86400 and {_CERTIFICATE} > 0",
        "1h",
        "critical",
        "The certificate of the webhook expires soon",
        "The certificate that {{ $labels.instance }} presents expires in"
        " {{ $value | humanizeDuration }}. Afterwards the API server refuses versions other than"
        " v2beta1.",
    ),
    Alert(
        "MPIJobsFailing",
        f"{_ended('failed')} > 5 and {_ended('failed')} > {_ended('successful')}",
        "0m",
        "info",
        "Most MPIJobs fail",
        "{{ $value | humanize }} MPIJobs failed within an hour, and fewer succeeded.",
    ),
)


def groups() -> Manifest:
    """The rules, as a rules file of Prometheus has them."""
    return {"groups": [{"name": NAME, "rules": [alert.rule for alert in ALERTS]}]}


def rules_file() -> str:
    """For `rule_files` of a Prometheus."""
    return "# Made by `make generate`. Do not edit.\n" + _yaml(groups())


def prometheus_rule() -> str:
    """For the Prometheus Operator."""
    rule = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": NAME, "namespace": Installation().namespace},
        "spec": groups(),
    }
    return yaml_text([rule], "Alerts for the Prometheus Operator.")


def _yaml(content: Any) -> str:
    return yaml.safe_dump(content, sort_keys=False, width=1000)


FILES = {
    "deploy/monitoring/alerts.yaml": rules_file,
    "deploy/monitoring/prometheus-rule.yaml": prometheus_rule,
    "deploy/chart/files/alerts.yaml": rules_file,
}
