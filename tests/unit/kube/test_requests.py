import json

import pytest

from mpi_operator.kube import requests
from mpi_operator.kube.client import DeleteOptions, LogOptions, Propagation, Selector, WatchOptions
from mpi_operator.kube.resources import JOBS, NODES, PODS

ROOT = "/api/v1/namespaces/team/pods"


def pod(**metadata):
    return {"kind": "Pod", "metadata": {"name": "x", "namespace": "team"} | metadata}


def page(limit=500, token="", **selector):
    return requests.page(PODS, "team", Selector(**selector), limit, token)


def watch(**options):
    return requests.watch(PODS, "team", WatchOptions(**options))


def delete(**options):
    return requests.delete(PODS, "x", "team", DeleteOptions(**options))


def log(**options):
    return requests.log("x", "team", LogOptions(**options))


@pytest.mark.parametrize(
    ("request_", "verb", "method", "path"),
    [
        (requests.create(PODS, pod()), "create", "POST", ROOT),
        (requests.create(PODS, pod(), "eviction"), "create", "POST", f"{ROOT}/x/eviction"),
        (requests.get(PODS, "x", "team", ""), "get", "GET", f"{ROOT}/x"),
        (requests.get(PODS, "x", "team", "status"), "get", "GET", f"{ROOT}/x/status"),
        (page(), "list", "GET", ROOT),
        (watch(), "watch", "GET", ROOT),
        (requests.replace(PODS, pod(), ""), "update", "PUT", f"{ROOT}/x"),
        (requests.replace(PODS, pod(), "status"), "update", "PUT", f"{ROOT}/x/status"),
        (requests.patch(PODS, "x", {}, "team", ""), "patch", "PATCH", f"{ROOT}/x"),
        (delete(), "delete", "DELETE", f"{ROOT}/x"),
        (log(), "get", "GET", f"{ROOT}/x/log"),
        (requests.raw("/version"), "get", "GET", "/version"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_sent_where(request_, verb, method, path):
    assert (request_.verb, request_.method, request_.path) == (verb, method, path)
    assert request_.is_read == (method == "GET")


def test_metrics_name_the_subresource():
    assert requests.get(JOBS, "x", "team", "status").resource == "jobs.batch/status"
    assert requests.get(JOBS, "x", "team", "").resource == "jobs.batch"
    assert log().resource == "pods/log"


def test_an_object_is_sent_as_it_is():
    manifest = pod(labels={"é": "ü"}) | {"spec": {"nothing": None, "list": [1, 2.5, True]}}
    assert json.loads(requests.create(PODS, manifest).body or b"") == manifest


def test_the_server_may_make_up_the_name():
    manifest = {"metadata": {"generateName": "x-", "namespace": "team"}}
    assert requests.create(PODS, manifest).path == ROOT


@pytest.mark.parametrize("make", [requests.create, requests.replace])
def test_an_object_without_its_namespace_is_refused(make):
    with pytest.raises(ValueError, match=r"Pod 'x': metadata\.namespace is missing"):
        make(PODS, {"metadata": {"name": "x"}}, "")


def test_a_cluster_wide_object_needs_no_namespace():
    assert requests.replace(NODES, {"metadata": {"name": "x"}}, "").path == "/api/v1/nodes/x"


def test_replacing_something_without_a_name_is_refused():
    with pytest.raises(ValueError, match="cannot be the name"):
        requests.replace(PODS, {"metadata": {"namespace": "team"}}, "")


def test_a_patch_is_merged():
    request = requests.patch(PODS, "x", {"a": None}, "team", "")
    assert request.content_type == "application/merge-patch+json"


@pytest.mark.parametrize(
    ("force", "query"),
    [(False, {"fieldManager": "me"}), (True, {"fieldManager": "me", "force": "true"})],
)
def test_applying_names_the_manager(force, query):
    request = requests.apply(PODS, pod(), requests.ApplyOptions("me", force=force), "")
    assert (request.method, request.query) == ("PATCH", query)
    assert request.content_type == "application/apply-patch+yaml"


@pytest.mark.parametrize(
    ("options", "query"),
    [
        pytest.param({}, {"limit": "500"}, id="nothing chosen"),
        pytest.param(
            {"labels": "a=b", "fields": "c=d", "limit": 1, "token": "t"},
            {"labelSelector": "a=b", "fieldSelector": "c=d", "limit": "1", "continue": "t"},
            id="everything chosen",
        ),
    ],
)
def test_what_a_page_is_asked_for(options, query):
    assert page(**options).query == query


WATCH = {"watch": "true", "allowWatchBookmarks": "true"}


@pytest.mark.parametrize(
    ("options", "query"),
    [
        pytest.param({}, {}, id="from now on"),
        pytest.param({"resource_version": "7"}, {"resourceVersion": "7"}, id="from a version on"),
        pytest.param(
            {"initial_events": True},
            {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"},
            id="with all there is",
        ),
        pytest.param({"timeout": 300.4}, {"timeoutSeconds": "300"}, id="for a while"),
        pytest.param({"timeout": 0.0}, {"timeoutSeconds": "1"}, id="0 would mean half an hour"),
        pytest.param(
            {"labels": "a=b", "fields": "c=d"},
            {"labelSelector": "a=b", "fieldSelector": "c=d"},
            id="of some",
        ),
    ],
)
def test_what_a_watch_is_asked_for(options, query):
    assert watch(**options).query == WATCH | query


@pytest.mark.parametrize(
    ("options", "body"),
    [
        pytest.param({}, {"propagationPolicy": "Background"}, id="plainly"),
        pytest.param(
            {"propagation": Propagation.ORPHAN, "grace_period_seconds": 0},
            {"propagationPolicy": "Orphan", "gracePeriodSeconds": 0},
            id="at once and alone",
        ),
        pytest.param(
            {"uid": "u", "resource_version": "7"},
            {
                "propagationPolicy": "Background",
                "preconditions": {"uid": "u", "resourceVersion": "7"},
            },
            id="only this very one",
        ),
    ],
)
def test_how_an_object_is_deleted(options, body):
    assert json.loads(delete(**options).body) == body


def test_deleting_many_says_which():
    request = requests.delete_collection(
        PODS, "team", Selector(labels="a=b"), Propagation.FOREGROUND
    )
    assert (request.verb, request.path) == ("deletecollection", ROOT)
    assert request.query == {"labelSelector": "a=b"}
    assert json.loads(request.body or b"") == {"propagationPolicy": "Foreground"}


@pytest.mark.parametrize(
    ("options", "query"),
    [
        pytest.param({}, {}, id="all of it"),
        pytest.param(
            {"tail_lines": 0, "since_seconds": 0, "limit_bytes": 0},
            {"tailLines": "0", "sinceSeconds": "0", "limitBytes": "0"},
            id="0 is a number too",
        ),
        pytest.param(
            {"container": "c", "follow": True, "previous": True, "timestamps": True},
            {"container": "c", "follow": "true", "previous": "true", "timestamps": "true"},
            id="with everything",
        ),
    ],
)
def test_which_part_of_a_log_is_asked_for(options, query):
    assert log(**options).query == query
