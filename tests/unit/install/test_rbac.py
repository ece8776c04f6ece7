"""What the operator may do: enough, and no more."""

from typing import Any

import pytest
import yaml

from mpi_operator.build.role import role, rules
from mpi_operator.build.settings import Settings
from mpi_operator.controller.cached_types import MPI_JOBS
from mpi_operator.controller.controller import Controller
from mpi_operator.install import rbac
from mpi_operator.install.installation import Installation
from mpi_operator.install.yaml_text import yaml_text
from mpi_operator.kube.resources import SECRETS
from tests.unit.build.jobs import make_job

STANDARD = Installation()


def allowed(rules):
    """Pairs of what is allowed: (group, resource, verb)."""
    return {
        (rule.group, resource, verb)
        for rule in rules
        for resource in rule.resources.split()
        for verb in rule.verbs.split()
    }


def read_by(settings):
    """What a controller reads, as its permissions would name it."""
    client: Any = None
    watched = Controller(client, client, settings).resources()
    return {(resource.group, resource.plural) for resource, _ in watched}


@pytest.mark.parametrize("verb", ["list", "watch"])
def test_what_is_watched_may_be_read(verb):
    verbs = allowed(rbac.OPERATOR)
    assert all((*kind, verb) in verbs for kind in read_by(Settings()))


@pytest.mark.parametrize("scheduler", ["volcano", "scheduler-plugins-scheduler"])
@pytest.mark.parametrize("verb", ["list", "watch"])
def test_gang_scheduling_needs_its_own_file_and_no_other(scheduler, verb):
    more = read_by(Settings(gang_scheduler=scheduler)) - read_by(Settings())
    assert more
    assert all((*kind, verb) in allowed(rbac.GANG) for kind in more)
    assert not {group for group, *_ in allowed(rbac.OPERATOR)} & {group for group, _ in more}


def test_secrets_are_neither_listed_nor_watched():
    verbs = {verb for _, resource, verb in allowed(rbac.OPERATOR) if resource == "secrets"}
    assert verbs == {"create", "get"}
    assert (SECRETS.group, SECRETS.plural) not in read_by(Settings())


def test_the_operator_may_grant_launchers_what_they_need():
    """An API server lets a program grant only what it may do itself."""
    [rule] = rules(make_job())
    granted = {("", resource, verb) for resource in rule["resources"] for verb in rule["verbs"]}
    assert granted <= allowed(rbac.EXEC)
    assert not granted & allowed(rbac.OPERATOR)


def test_the_operator_may_grant_adopted_launchers_what_their_kubectl_needs():
    reading, _ = role(make_job(), by_kubectl=True)["rules"]
    granted = {
        ("", resource, verb) for resource in reading["resources"] for verb in reading["verbs"]
    }
    assert granted <= allowed(rbac.OPERATOR)


def test_nothing_is_allowed_by_wildcard():
    webhooks = (*rbac.CERTIFICATES, *rbac.TRUST)
    more = (*rbac.GANG, *rbac.EXEC, *webhooks, *rbac.EDIT)
    everything = (*rbac.OPERATOR, *rbac.LOCK, *more)
    assert not any("*" in part for rule in allowed(everything) for part in rule)


def test_jobs_of_users_are_never_changed_but_for_their_status():
    verbs = {
        (resource, verb)
        for group, resource, verb in allowed(rbac.OPERATOR)
        if group == MPI_JOBS.group
    }
    assert not verbs & {("mpijobs", verb) for verb in ("create", "update", "patch")}


def test_leases_are_the_lock_namespaces_own():
    assert "coordination.k8s.io" not in {group for group, *_ in allowed(rbac.OPERATOR)}
    (role,) = (each for each in rbac.account(STANDARD) if each["kind"] == "Role")
    assert role["metadata"]["namespace"] == "mpi-operator"


def test_webhooks_need_nothing_but_named_objects_and_one_secret():
    rules = (*rbac.CERTIFICATES, *rbac.TRUST)
    unnamed = [(each.resources, each.verbs) for each in rules if not each.names]
    assert unnamed == [("secrets", "create")]
    assert not {group for group, *_ in allowed(rbac.OPERATOR)} & {each.group for each in rbac.TRUST}


def test_the_secret_of_the_webhooks_is_in_the_operators_namespace():
    (role,) = (each for each in rbac.webhooks(STANDARD) if each["kind"] == "Role")
    assert role["metadata"]["namespace"] == "mpi-operator"
    assert {name for rule in role["rules"] for name in rule["resources"]} == {"secrets"}


def test_what_is_applied_per_namespace_names_none():
    assert all("namespace" not in each["metadata"] for each in rbac.namespaced(STANDARD))


@pytest.mark.parametrize(
    "objects",
    [
        rbac.cluster(STANDARD),
        rbac.namespaced(STANDARD),
        rbac.gang_scheduling(STANDARD),
        rbac.webhooks(STANDARD),
    ],
)
def test_every_binding_binds_a_role_of_its_own_file(objects):
    roles = {(each["kind"], each["metadata"]["name"]) for each in objects if "rules" in each}
    bound = {
        (each["roleRef"]["kind"], each["roleRef"]["name"]) for each in objects if "roleRef" in each
    }
    assert bound <= roles
    assert bound


def test_a_file_says_why_and_means_the_same():
    text = yaml_text(rbac.cluster(STANDARD), "All of it.")
    assert list(yaml.safe_load_all(text)) == rbac.cluster(STANDARD)
    assert all(f"# {rule.why}\n" in text for rule in (*rbac.OPERATOR, *rbac.LOCK))


def test_a_file_gives_no_reason_of_another_rule():
    text = yaml_text(rbac.cluster(STANDARD), "All of it.")
    webhooks = (*rbac.CERTIFICATES, *rbac.TRUST)
    assert not [rule for rule in (*webhooks, *rbac.GANG) if rule.why in text]


def test_people_may_do_what_kubectl_offers_them():
    verbs = {(resource, verb) for _, resource, verb in allowed(rbac.EDIT)}
    assert {("mpijobs/scale", verb) for verb in ("get", "update", "patch")} <= verbs
    assert not {verb for resource, verb in verbs if resource == "mpijobs/status"} - {"get"}


def test_users_have_the_roles_that_they_always_had():
    admin, edit, view = rbac.users()
    (selector,) = admin["aggregationRule"]["clusterRoleSelectors"]
    assert selector["matchLabels"].items() <= edit["metadata"]["labels"].items()
    names = [each["metadata"]["name"] for each in (admin, edit, view)]
    assert names == [f"kubeflow-mpijobs-{role}" for role in ("admin", "edit", "view")]
