"""The comparison of what the operator may do with what it did in the tests."""

import json
from typing import Any

from devcluster.audit import Record
from scripts import check_permissions
from scripts.check_permissions import (
    GRANTED,
    UNUSED,
    Permission,
    granted,
    missing,
    problems,
    unused,
)
from tests.support.permissions import requested

ALLOWED = {Permission("", "pods", "get"), Permission("", "secrets", "get", "mine")}


def record(user, **facts):
    given: dict[str, Any] = {
        "verb": "get",
        "resource": "pods",
        "subresource": "",
        "namespace": "x",
        "name": "pi",
    }
    ended = {"code": 200, "stage": "ResponseComplete", "user_agent": "", "uri": ""}
    return Record(user=user, **(given | ended | facts))


def everything():
    """As if each permission but the exceptions had been used."""
    return granted(GRANTED) - set(UNUSED)


def test_what_was_never_used_is_found():
    assert list(unused(ALLOWED, {Permission("", "pods", "get", "pi")})) == [
        Permission("", "secrets", "get", "mine")
    ]


def test_what_is_not_granted_is_found():
    other = Permission("", "secrets", "get", "yours")
    assert list(missing(ALLOWED, {other, Permission("", "secrets", "get", "mine")})) == [other]


def test_a_run_that_used_everything_is_fine():
    assert problems(everything()) == []


def test_one_that_used_less_or_more_is_not():
    more = Permission("", "nodes", "list")
    less = Permission("", "pods", "delete")
    assert problems((everything() - {less}) | {more}) == [
        "granted and never used: delete pods",
        "used and not granted: list nodes",
    ]


def test_an_exception_that_is_none_any_more_is_found():
    used = everything() | {each for each in granted(GRANTED) if each.resource == "pods/exec"}
    assert [each for each in problems(used) if "pods/exec" in each]


def test_only_requests_of_operators_for_objects_count():
    account = "system:serviceaccount:team-a:mpi-operator"
    records = [
        record(account),
        record(account, resource="mpijobs", subresource="status", group="kubeflow.org"),
        record(account, resource="", name=""),
        record("system:serviceaccount:team-a:default", verb="list"),
        record("admin", verb="delete"),
    ]
    assert requested(records) == {
        Permission("", "pods", "get", "pi"),
        Permission("kubeflow.org", "mpijobs/status", "get", "pi"),
    }


def test_without_nodes_there_is_nothing_to_compare(tmp_path, capsys):
    (tmp_path / "api-1.json").write_text(json.dumps([]))
    assert check_permissions.main(tmp_path) == 0
    assert "no cluster tests ran" in capsys.readouterr().out
    (tmp_path / "cluster-1.json").write_text(json.dumps([]))
    assert check_permissions.main(tmp_path) == 1
