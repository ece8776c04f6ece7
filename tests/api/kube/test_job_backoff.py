"""Kubernetes' Job controller keeps the contract that ours is written to."""

from tests.contract.job_backoff import JobBackoffContract


class TestKubernetes(JobBackoffContract):
    """With the API server and the controller manager that the tests share."""
