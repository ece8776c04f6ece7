"""The rules for exit codes: the local Job controller judges as that of Kubernetes does."""

from typing import Any

import msgspec
import pytest

from mpi_operator.build.restart_policies import pod_failure_policy
from mpi_operator.kube.client import Selector
from mpi_operator.kube.go_json import without_nulls
from mpi_operator.kube.resources import JOBS, PODS, Manifest
from mpi_operator.local.jobs.job_objects import Job, JobPod
from mpi_operator.local.jobs.pod_failure_policy import REASON, judge
from tests.support.jobs import Jobs
from tests.support.mpijobs import template
from tests.support.observations import a_job
from tests.support.waiting import until

_RULES = pod_failure_policy(
    a_job(annotations={"mpi-operator.kubeflow.org/launcher-restart-policy": "ExitCode"})
)
_DISRUPTED = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}


def _a_job(name: str) -> Manifest:
    """A Job that may not fail once."""
    spec = {"backoffLimit": 0, "podReplacementPolicy": "Failed", **_RULES}
    return {
        "metadata": {"name": name},
        "spec": {**spec, "template": template(restartPolicy="Never")},
    }


async def _pods(jobs: Jobs, name: str) -> list[Manifest]:
    selector = Selector(labels=f"batch.kubernetes.io/job-name={name}")
    return (await jobs.client.list(PODS, jobs.namespace, selector)).items


async def _first_pod(jobs: Jobs, name: str) -> str:
    async def is_there() -> bool:
        return len(await _pods(jobs, name)) == 1

    await until(is_there)
    [pod] = await _pods(jobs, name)
    return str(pod["metadata"]["name"])


def _failed_condition(job: Manifest) -> Manifest:
    conditions: list[Manifest] = job.get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == "Failed"), {})


@pytest.mark.parametrize(
    ("name", "code", "conditions"),
    [
        pytest.param("final", 1, [], id="the first exit code that is final"),
        pytest.param("last-final", 127, [], id="the last exit code that is final"),
        pytest.param("retried", 128, [], id="the first exit code that is retried"),
        pytest.param("disrupted", 1, [_DISRUPTED], id="a disruption"),
    ],
)
async def test_both_judge_a_failed_pod_alike(
    shared: Jobs, name: str, code: int, conditions: list[Any]
) -> None:
    name = f"rules-{name}"
    made = {**_a_job(name), "apiVersion": JOBS.api_version, "kind": JOBS.kind}
    made["metadata"]["namespace"] = shared.namespace
    await shared.client.create(JOBS, made)
    pod = await _first_pod(shared, name)
    await shared.set_status(pod, conditions=conditions)
    ended = {"name": "mpi", "image": "i", "imageID": "", "ready": False, "restartCount": 0}
    ended["state"] = {"terminated": {"exitCode": code, "reason": "Error"}}
    await shared.set_status(pod, phase="Failed", containerStatuses=[ended])
    failed_pod = await shared.client.get(PODS, pod, shared.namespace)

    async def is_decided() -> bool:
        found = await shared.client.get(JOBS, name, shared.namespace)
        return bool(_failed_condition(found)) or len(await _pods(shared, name)) > 1

    await until(is_decided)
    stored = await shared.client.get(JOBS, name, shared.namespace)
    verdict = judge(
        msgspec.convert(without_nulls(stored), Job),
        msgspec.convert(without_nulls(failed_pod), JobPod),
    )
    failed = _failed_condition(stored)
    is_fatal = failed.get("reason") == REASON
    assert verdict.is_counted == bool(failed)
    assert verdict.fails_job == (failed["message"] if is_fatal else "")
