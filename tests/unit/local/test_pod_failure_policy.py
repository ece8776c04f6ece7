"""The rules of a launcher for failed pods. Kubernetes' own controller: tests/api/operator."""

from datetime import timedelta

import msgspec
import pytest

from mpi_operator.build.restart_policies import pod_failure_policy
from mpi_operator.local.jobs.job_decisions import PodFailureBackoff, decide
from mpi_operator.local.jobs.job_objects import Job, JobPod
from mpi_operator.local.jobs.pod_failure_policy import judge
from tests.support.observations import a_job as an_mpi_job
from tests.unit.local.jobs import a_job, a_pod, at, stamp

BACKOFF = PodFailureBackoff(initial=timedelta(seconds=10), maximum=timedelta(seconds=60))
RULES = pod_failure_policy(
    an_mpi_job(annotations={"mpi-operator.kubeflow.org/launcher-restart-policy": "ExitCode"})
)
DISRUPTED = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}


def launcher(status=None, **spec):
    return a_job(status, **RULES, **spec)


def failed(code=1, *, uid="p1", container="mpi", conditions=()):
    manifest = msgspec.to_builtins(a_pod("Failed", uid=uid))
    ended = {"terminated": {"exitCode": code, "finishedAt": stamp(3)}}
    manifest["status"] |= {
        "containerStatuses": [{"name": container, "state": ended}],
        "conditions": list(conditions),
    }
    return msgspec.convert(manifest, JobPod)


@pytest.mark.parametrize(
    ("pod", "is_counted", "message"),
    [
        pytest.param(
            failed(1),
            True,
            "Container mpi for pod here/j-p1 failed with exit code 1 matching FailJob rule at "
            "index 1",
            id="an exit code of a program is final",
        ),
        pytest.param(
            failed(127),
            True,
            "Container mpi for pod here/j-p1 failed with exit code 127 matching FailJob rule at "
            "index 1",
            id="the last one that is final",
        ),
        pytest.param(failed(128), True, "", id="the first one that is retried"),
        pytest.param(failed(137), True, "", id="a signal is retried"),
        pytest.param(failed(255), True, "", id="the last one of all"),
        pytest.param(failed(1, container="proxy"), True, "", id="of another container"),
        pytest.param(failed(0), True, "", id="failed without an exit code"),
        pytest.param(failed(1, conditions=[DISRUPTED]), False, "", id="disrupted: ignored"),
        pytest.param(
            failed(137, conditions=[DISRUPTED | {"status": "False"}]), True, "", id="not disrupted"
        ),
    ],
)
def test_what_follows_from_a_failed_pod(pod, is_counted, message):
    verdict = judge(launcher(), pod)
    assert (verdict.is_counted, verdict.fails_job) == (is_counted, message)


@pytest.mark.parametrize("code", [1, 137])
def test_without_rules_every_failure_counts(code):
    assert judge(a_job(), failed(code)).is_counted


def reasons(decision):
    return [(each.type, each.reason) for each in decision.status.conditions]


def test_a_final_exit_code_fails_the_job_although_it_might_be_retried():
    decision = decide(launcher(backoffLimit=6), [failed(2)], at(5), BACKOFF)
    assert reasons(decision) == [("FailureTarget", "PodFailurePolicy")]
    assert not decision.create
    stored = next_job(decision)
    after = decide(stored, [failed(2)], at(6), BACKOFF)
    assert after.status.uncounted_terminated_pods.failed == ("p1",)


def test_it_has_failed_when_its_pod_is_counted():
    status = {
        "startTime": stamp(0),
        "uncountedTerminatedPods": {"failed": ["p1"]},
        "conditions": [
            {
                "type": "FailureTarget",
                "status": "True",
                "reason": "PodFailurePolicy",
                "message": "!",
            }
        ],
    }
    decision = decide(launcher(status), [], at(5), BACKOFF)
    assert reasons(decision)[-1] == ("Failed", "PodFailurePolicy")
    assert decision.status.failed == 1


def test_another_exit_code_is_retried_after_the_backoff():
    decision = decide(launcher(backoffLimit=6), [failed(137)], at(5), BACKOFF)
    assert reasons(decision) == []
    assert decision.requeue_after == timedelta(seconds=8)
    assert decision.status.uncounted_terminated_pods.failed == ("p1",)


def test_another_exit_code_fails_the_job_at_the_limit():
    decision = decide(launcher(backoffLimit=0), [failed(137)], at(5), BACKOFF)
    assert reasons(decision) == [("FailureTarget", "BackoffLimitExceeded")]


def test_a_disruption_is_not_counted_and_the_next_pod_comes_at_once():
    decision = decide(launcher(backoffLimit=0), [failed(conditions=[DISRUPTED])], at(5), BACKOFF)
    assert decision.create
    assert [pod.uid for pod in decision.untrack] == ["p1"]
    assert decision.status.failed == 0
    assert decision.status.uncounted_terminated_pods.failed == ()


def next_job(decision):
    manifest = msgspec.to_builtins(launcher())
    return msgspec.convert(manifest | {"status": msgspec.to_builtins(decision.status)}, Job)
