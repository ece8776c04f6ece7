"""The metrics by the names that dashboards use."""

import pytest
from prometheus_client import CollectorRegistry

from mpi_operator.controller.metrics import JobMetrics


@pytest.fixture
def registry():
    return CollectorRegistry()


def test_jobs_are_counted_under_the_names_of_the_go_operator(registry):
    metrics = JobMetrics(registry)
    metrics.job_created()
    metrics.job_succeeded()
    metrics.job_failed()
    metrics.job_restarted_worker()
    for name in ("jobs_created", "jobs_successful", "jobs_failed", "workers_restarted"):
        assert registry.get_sample_value(f"mpi_operator_{name}_total") == 1


def test_a_job_has_its_info_metric_while_it_exists(registry):
    metrics = JobMetrics(registry)
    labels = {"launcher": "pi-launcher", "namespace": "default"}
    metrics.job_info("default", "pi-launcher")
    assert registry.get_sample_value("mpi_operator_job_info", labels) == 1
    metrics.forget_job("default", "pi-launcher")
    assert registry.get_sample_value("mpi_operator_job_info", labels) is None


def test_forgetting_a_job_without_metrics_does_not_raise(registry):
    JobMetrics(registry).forget_job("default", "pi-launcher")  # raises if it has to be there
    labels = {"launcher": "pi-launcher", "namespace": "default"}
    assert registry.get_sample_value("mpi_operator_job_info", labels) is None


def test_the_leader_metric_is_evaluated_at_each_scrape(registry):
    answers = iter([False, True])
    JobMetrics(registry).set_leader(lambda: next(answers))
    seen = [registry.get_sample_value("mpi_operator_is_leader") for _ in range(2)]
    assert seen == [0, 1]


def test_reconciles_are_timed_by_outcome(registry):
    JobMetrics(registry).reconcile("done", 0.02)
    name = "mpi_operator_reconcile_duration_seconds"
    assert registry.get_sample_value(f"{name}_count", {"outcome": "done"}) == 1
