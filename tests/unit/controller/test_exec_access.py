"""The permission of a launcher to exec into its workers: before they are listed, and no other."""

import asyncio

import pytest

from mpi_operator.controller.actions import Create, GrantExec, Patch
from mpi_operator.controller.exec_access import RBAC_FILE, grant_exec
from mpi_operator.controller.observed import Observed
from mpi_operator.controller.plan import make_plan
from mpi_operator.controller.problems import ProblemReason
from mpi_operator.kube import errors
from mpi_operator.kube.resources import (
    CONFIG_MAPS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    Key,
)
from mpi_operator.local.apiserver.cluster import LocalCluster
from mpi_operator.local.apiserver.served_kinds import Kind
from tests.support.direct_cluster import DirectCluster
from tests.support.faulty_client import FaultyClient, refused
from tests.support.observations import NOW, PLAIN, a_config_map, a_job, observed, workers
from tests.support.worlds import World, running_world

EXEC = {"mpi-operator.kubeflow.org/transport": "exec"}
V1 = {"mpi-operator.kubeflow.org/written-in": "v1"}
NAME = Key("lab", "pi-launcher")


def exec_job(count=2):
    return a_job(count, annotations=EXEC)


def stage_of(plan, matches):
    """The number of the first stage with such an action; None where there is none."""
    found = (i for i, stage in enumerate(plan.stages) for action in stage if matches(action))
    return next(found, None)


def grants(action):
    return isinstance(action, GrantExec)


def lists_hosts(action):
    return isinstance(action, Create | Patch) and action.resource == CONFIG_MAPS


def creates_pods(action):
    return isinstance(action, Create) and action.resource == PODS


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(Observed(exec_job()), id="a new job"),
        pytest.param(
            observed(
                exec_job(3),
                workers(exec_job(), "Running", "Running"),
                config_map=a_config_map(exec_job(), [0, 1]),
            ),
            id="a job that grows",
        ),
    ],
)
def test_workers_are_permitted_before_they_are_listed_and_created(seen):
    plan = make_plan(seen, PLAIN, NOW)
    granted, listed, created = (
        stage_of(plan, each) for each in (grants, lists_hosts, creates_pods)
    )
    assert granted is not None
    assert listed is not None
    assert created is not None
    assert granted < listed < created


def test_a_job_whose_hosts_are_listed_costs_no_request():
    job = exec_job()
    plan = make_plan(
        observed(job, workers(job, "Running", "Running"), keys_checked=None), PLAIN, NOW
    )
    assert stage_of(plan, grants) is None


@pytest.mark.parametrize("suspend", [False, True])
def test_a_job_with_ssh_needs_no_permission(suspend):
    plan = make_plan(Observed(a_job(policy={"suspend": suspend})), PLAIN, NOW)
    assert stage_of(plan, grants) is None


def test_a_job_of_v1_has_an_account_a_role_and_no_keys():
    world = running_world(annotations=V1)
    for resource in (SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS):
        assert world.cluster.get(resource, NAME)
    assert world.cluster.all(SECRETS) == []


def test_the_role_follows_the_number_of_workers():
    world = running_world(annotations=EXEC)
    for count in (3, 1):
        world.scale(count)
        world.rest()
        [rule] = world.cluster.get(ROLES, NAME)["rules"]
        assert rule["resourceNames"] == [f"pi-worker-{index}" for index in range(count)]


def test_a_suspended_job_has_its_permission():
    world = World(annotations=EXEC, policy={"suspend": True})
    world.rest()
    assert world.cluster.get(SERVICE_ACCOUNTS, NAME)


class Bench:
    """A cluster that a launcher is given access to."""

    def __init__(self):
        local = LocalCluster([Kind(each) for each in (SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS)])
        self.cluster = DirectCluster(local)
        self.client = FaultyClient(local)

    def grant(self, job):
        action = GrantExec(job, frozenset(range(job.spec.worker_count)))
        return asyncio.run(grant_exec(self.client.as_client, action))

    def requests(self):
        found, self.client.requests = [str(each) for each in self.client.requests], []
        return found


def test_a_second_grant_changes_nothing():
    bench = Bench()
    assert bench.grant(exec_job()) is None
    assert bench.requests() == [
        "create Role pi-launcher",
        "create RoleBinding pi-launcher",
        "create ServiceAccount pi-launcher",
    ]
    assert bench.grant(exec_job()) is None
    assert not [each for each in bench.requests() if each.startswith("patch")]


def test_what_someone_else_has_is_not_touched():
    bench = Bench()
    role = {"metadata": {"name": "pi-launcher", "namespace": "lab"}, "rules": []}
    bench.cluster.create(ROLES, role)
    problem = bench.grant(exec_job())
    assert problem.reason == ProblemReason.NAME_TAKEN
    assert bench.cluster.get(ROLES, NAME)["rules"] == []


def test_a_role_that_was_changed_is_corrected():
    bench = Bench()
    bench.grant(exec_job())
    everything = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    bench.cluster.patch(ROLES, NAME, {"rules": everything})
    assert bench.grant(exec_job()) is None
    [rule] = bench.cluster.get(ROLES, NAME)["rules"]
    assert rule["resourceNames"] == ["pi-worker-0", "pi-worker-1"]


@pytest.mark.parametrize("kind", ["Role", "RoleBinding", "ServiceAccount"])
def test_without_the_permission_the_problem_says_what_to_apply(kind):
    bench = Bench()

    def forbid(request):
        if request.resource.kind == kind:
            raise refused(403, "the operator may not", "Forbidden")

    bench.client.before = forbid
    problem = bench.grant(exec_job())
    assert problem.reason == ProblemReason.FORBIDDEN
    assert not problem.is_fatal
    assert f"apply {RBAC_FILE}" in problem.message
    assert "the operator may not" in problem.message


def test_what_is_deleted_in_between_is_tried_again():
    bench = Bench()
    bench.grant(exec_job())

    def vanish(request):
        if request.verb == "get":
            raise refused(404, "gone", "NotFound")

    bench.client.before = vanish
    with pytest.raises(errors.Conflict):
        bench.grant(exec_job())
