import json

import yaml

from benchmarks.operators import kwok, raw
from benchmarks.operators.jobs import NOWHERE, job

MADE = {
    "metadata": {
        "name": "big-worker-0",
        "namespace": "there",
        "uid": "1",
        "resourceVersion": "2",
        "creationTimestamp": "now",
        "labels": {"a": "b"},
        "ownerReferences": [{"kind": "MPIJob", "name": "big", "uid": "old"}],
    },
    "spec": {
        "nodeSelector": NOWHERE,
        "tolerations": [{"key": "node.kubernetes.io/not-ready"}],
        "volumes": [{"name": "data", "emptyDir": {}}, {"name": "token", "projected": {}}],
        "containers": [{"name": "c", "volumeMounts": [{"name": "data"}, {"name": "token"}]}],
    },
    "status": {"phase": "Pending"},
}


def test_a_plain_post_equals_the_request_of_the_operator():
    [body] = raw.bodies([MADE], "here", "new")
    assert json.loads(body) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "big-worker-0",
            "namespace": "here",
            "labels": {"a": "b"},
            "ownerReferences": [{"kind": "MPIJob", "name": "big", "uid": "new"}],
        },
        "spec": {
            "nodeSelector": NOWHERE,
            "volumes": [{"name": "data", "emptyDir": {}}],
            "containers": [{"name": "c", "volumeMounts": [{"name": "data"}]}],
        },
    }


def selectors(manifest):
    roles = manifest["spec"]["mpiReplicaSpecs"].values()
    return [role["template"]["spec"].get("nodeSelector") for role in roles]


def test_only_pods_that_must_not_run_select_a_missing_node():
    assert selectors(job("a", "n", 2, runs=False)) == [NOWHERE, NOWHERE]
    assert selectors(job("a", "n", 2)) == [None, None]


def stages(**options):
    found = yaml.safe_load_all(kwok.configuration(**options))
    return [each["metadata"]["name"] for each in found if each["kind"] == "Stage"]


def test_launchers_succeed_only_where_they_should():
    assert stages(launchers_end=True) == ["ready", "run", "delete", "succeed"]
    assert stages(launchers_end=False) == ["ready", "run", "delete"]
