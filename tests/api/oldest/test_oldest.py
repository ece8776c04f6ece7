"""The oldest Kubernetes that we support: what depends on its API server and on its controllers."""

from zlib import crc32

import pytest

from devcluster.binaries import OLDEST, TOOLS
from devcluster.control_plane import ControlPlane
from mpi_operator.api.conversion import VERSIONS
from mpi_operator.kube import discovery, errors
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import CONFIG_MAPS, JOBS, ROLES, SECRETS, SERVICES, Manifest
from tests.api.crd import test_rules as rules
from tests.api.versions import test_rules as older_rules
from tests.support.jobs import Jobs
from tests.support.kubectl import Result
from tests.support.mpijobs import MPIJOBS, changed, mpijob
from tests.support.operator import Operator
from tests.support.versions import RESOURCES, typical, workers
from tests.support.waiting import until


def named(job: Manifest, namespace: str, request: pytest.FixtureRequest) -> Manifest:
    """A job with a name of its own, unless the name matters."""
    if job["metadata"]["name"] == "pi":
        job = changed(job, "metadata.name", f"rule-{crc32(request.node.name.encode())}")
    return changed(job, "metadata.namespace", namespace)


async def test_the_server_is_of_that_version(client: HttpClient, oldest_plane: ControlPlane):
    expected = TOOLS[f"{OLDEST}kube-apiserver"].version
    assert await discovery.server_version(client) == expected


def test_everything_is_accepted_without_a_warning_and_not_changed_again(applied: list[Result]):
    """By what would change, because kubectl calls each patch of a disruption budget a change."""
    first, second, difference = applied
    assert (first.code, first.errors) == (0, "")
    assert (second.code, second.errors) == (0, "")
    assert (difference.code, difference.output) == (0, "")


# Older API servers do not know how large an integer of 32 bits can be.
REJECTED = [each for each in rules.REJECTED if each.id != "too many slots"]


async def test_a_number_that_is_too_large_is_reported_by_the_operator(jobs: Jobs):
    await jobs.submit(mpijob("large", slotsPerWorker=2**31))
    [message] = await jobs.event_messages("large", "ValidationError")
    assert "spec.slotsPerWorker" in message


@pytest.mark.parametrize(("job", "message"), [*REJECTED, *older_rules.REJECTED])
async def test_rules_and_webhook_refuse_invalid_jobs(
    client: HttpClient, namespace: str, request: pytest.FixtureRequest, job, message
):
    with pytest.raises(errors.Invalid, match=message):
        await client.create(older_rules.resource(job), named(job, namespace, request))


@pytest.mark.parametrize("job", [*rules.ACCEPTED, *older_rules.ACCEPTED])
def test_valid_jobs_are_accepted(oldest_plane: ControlPlane, oldest_operator: Operator, job):
    path = older_rules.resource(job).collection_path("default")
    answer = oldest_plane.endpoint().request("POST", f"{path}?dryRun=All", job)
    assert answer.status == 201, answer.body


async def test_a_rule_compares_with_what_was_before(client: HttpClient, namespace: str):
    """By `optionalOldSelf`, without which an API server refuses our CRD."""
    await client.create(MPIJOBS, mpijob("kept", namespace, runPolicy={"suspend": True}))
    change = {"spec": {"runPolicy": {"managedBy": "kueue.x-k8s.io/multikueue"}}}
    with pytest.raises(errors.Invalid, match=r"managedBy.*immutable"):
        await client.patch(MPIJOBS, "kept", change, namespace)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_job_of_each_version_runs_to_its_end(jobs: Jobs, version: str):
    name = f"life-{version}"
    await jobs.client.create(RESOURCES[version], typical(version, name, jobs.namespace))
    await jobs.finish(name, workers=2)
    for other in VERSIONS:
        found = await jobs.client.get(RESOURCES[other], name, jobs.namespace)
        assert workers(found) == 2
    reasons = {reason for reason, _ in await jobs.events(name)}
    assert {"MPIJobCreated", "MPIJobRunning", "MPIJobSucceeded"} <= reasons


async def test_launchers_of_v1_may_exec_into_their_workers(jobs: Jobs):
    await jobs.client.create(RESOURCES["v1"], typical("v1", "exec", jobs.namespace))
    await until(lambda: jobs.has_workers("exec", 2))
    role = await jobs.client.get(ROLES, "exec-launcher", jobs.namespace)
    [rule] = role["rules"]
    assert rule["resourceNames"] == ["exec-worker-0", "exec-worker-1"]


async def test_a_failed_launcher_fails_its_job(jobs: Jobs):
    await jobs.submit(mpijob("failure", runPolicy={"backoffLimit": 0}))
    await jobs.fail(await jobs.start("failure", workers=2), exit_code=3)
    await jobs.becomes("failure", "Failed", reason="BackoffLimitExceeded")


async def test_a_job_that_ran_is_suspended_and_resumed_elsewhere(jobs: Jobs):
    """Its launcher's template is frozen, on servers before 1.36, while it has a start time."""
    await jobs.submit(mpijob("moves"))
    await jobs.start("moves", workers=2)
    await jobs.suspend("moves")
    await jobs.becomes("moves", "Suspended")
    await until(lambda: jobs.has_workers("moves", 0))
    template = {"spec": {"nodeSelector": {"zone": "b"}}}
    roles = {"Launcher": {"template": template}, "Worker": {"template": template}}
    await jobs.change("moves", runPolicy={"suspend": False}, mpiReplicaSpecs=roles)
    await jobs.finish("moves", workers=2)
    launcher = await jobs.launcher_job("moves")
    assert launcher["spec"]["template"]["spec"]["nodeSelector"] == {"zone": "b"}


async def test_a_running_job_is_scaled(jobs: Jobs):
    await jobs.submit(mpijob("scaled"))
    await jobs.start("scaled", workers=2)
    await jobs.scale("scaled", 3)
    await jobs.start_workers("scaled", 3)
    await jobs.scale("scaled", 1)
    await until(lambda: jobs.has_workers("scaled", 1))


async def test_a_deleted_job_takes_everything_with_it(jobs: Jobs):
    await jobs.submit(mpijob("deleted"))
    await until(lambda: jobs.has_workers("deleted", 2))
    await jobs.launcher_pod("deleted")
    await jobs.client.delete(MPIJOBS, "deleted", jobs.namespace)
    for resource, name in (
        (JOBS, "deleted-launcher"),
        (SERVICES, "deleted"),
        (CONFIG_MAPS, "deleted-config"),
        (SECRETS, "deleted-ssh"),
    ):
        await jobs.gone(resource, name)
