"""What the cluster in memory does beyond the contract: its sentences, and what pods need."""

from datetime import timedelta
from typing import Any

import pytest

from mpi_operator.kube import errors
from mpi_operator.kube.client import Client, DeleteOptions, Propagation, Selector, WatchOptions
from mpi_operator.kube.errors import Cause
from mpi_operator.kube.resources import CONFIG_MAPS, EVENTS, JOBS, NODES, PODS, SECRETS, Resource
from mpi_operator.local.apiserver import api_errors
from mpi_operator.local.apiserver.cluster import LocalCluster
from mpi_operator.local.apiserver.served_kinds import Kind
from mpi_operator.local.times import moment, timestamp
from tests.unit.local.clusters import START, WIDGETS, a_cluster, named, owned, pod

GADGETS = Resource("example.com", "v1", "gadgets", "Gadget")


@pytest.fixture
def cluster() -> LocalCluster:
    return a_cluster(clock=lambda: START)


def a_client(cluster: LocalCluster) -> Client:
    """For the type checker: the cluster is a client."""
    return cluster


# --- answers


async def test_nobody_changes_the_cluster_by_changing_what_was_given_or_answered(cluster):
    given = named("a", data={"colour": "red"})
    created = await cluster.create(CONFIG_MAPS, given)
    given["data"]["colour"] = created["data"]["colour"] = "blue"
    [listed] = (await cluster.list(CONFIG_MAPS)).items
    listed["data"]["colour"] = "green"
    assert (await cluster.get(CONFIG_MAPS, "a", "here"))["data"] == {"colour": "red"}


async def test_fields_that_are_null_are_not_there(cluster):
    spec = {"containers": [{"name": "main", "args": None}], "volumes": None}
    created = await cluster.create(PODS, named("a", labels=None, spec=spec))
    assert created["spec"]["containers"] == [{"name": "main"}]
    assert "volumes" not in created["spec"]
    assert "labels" not in created["metadata"]


async def test_what_belongs_to_the_cluster_cannot_be_given(cluster):
    wanted: dict[str, Any] = {"uid": "mine", "generation": 7, "deletionTimestamp": timestamp(START)}
    created = await cluster.create(WIDGETS, named("w", spec={}, **wanted))
    metadata = created["metadata"]
    assert metadata["uid"] != "mine"
    assert metadata["generation"] == 1
    assert "deletionTimestamp" not in metadata
    assert metadata["creationTimestamp"] == timestamp(START)


async def test_an_object_without_namespaces_has_none(cluster):
    await cluster.create(NODES, named("n", namespace="ignored"))
    assert "namespace" not in (await cluster.get(NODES, "n"))["metadata"]


# --- refusals, in the words of an API server


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Upper", r"metadata\.name: Invalid value: \"Upper\": a lowercase RFC 1123 subdomain"),
        ("a_b", "must consist of lower case alphanumeric"),
        ("-a", "must start and end with"),
        ("x" * 254, "must be no more than 253 characters"),
        ("", "name or generateName is required"),
    ],
)
async def test_a_name_that_is_no_name_is_told(cluster, name, words):
    with pytest.raises(errors.Invalid, match=words) as caught:
        await cluster.create(CONFIG_MAPS, named(name))
    assert caught.value.causes[0].field == "metadata.name"


async def test_a_namespace_that_is_none_is_told(cluster):
    with pytest.raises(errors.Invalid, match=r"metadata\.namespace: Invalid value"):
        await cluster.create(CONFIG_MAPS, named("a", namespace="No Such"))


async def test_the_sentences_are_those_of_kubernetes(cluster):
    await cluster.create(WIDGETS, named("w", spec={"replicas": 1}))
    with pytest.raises(errors.AlreadyExists) as taken:
        await cluster.create(WIDGETS, named("w"))
    with pytest.raises(errors.NotFound) as missing:
        await cluster.get(PODS, "x", "here")
    with pytest.raises(errors.Conflict) as stale:
        await cluster.replace(WIDGETS, named("w", resourceVersion="1", spec={}))
    assert str(taken.value) == 'widgets.example.com "w" already exists'
    assert str(missing.value) == 'pods "x" not found'
    assert str(stale.value) == (
        'Operation cannot be fulfilled on widgets.example.com "w": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    assert [each.value.code for each in (taken, missing, stale)] == [409, 404, 409]


async def test_a_kind_that_is_not_there_is_not_found(cluster):
    with pytest.raises(errors.NotFound, match="could not find the requested resource"):
        await cluster.list(GADGETS)


@pytest.mark.parametrize("subresource", ["status", "scale", "binding"])
async def test_a_subresource_that_a_kind_lacks_is_not_found(cluster, subresource):
    await cluster.create(CONFIG_MAPS, named("a"))
    with pytest.raises(errors.NotFound, match="could not find the requested resource"):
        await cluster.get(CONFIG_MAPS, "a", "here", subresource=subresource)


async def test_an_object_of_another_kind_is_refused(cluster):
    with pytest.raises(errors.BadRequest, match="does not match"):
        await cluster.create(CONFIG_MAPS, named("a") | {"kind": "Secret"})


@pytest.mark.parametrize(
    "selector", [Selector(labels="a in b"), Selector(fields="spec.colour=red")]
)
async def test_a_selector_that_is_none_is_a_bad_request(cluster, selector):
    with pytest.raises(errors.BadRequest):
        await cluster.list(CONFIG_MAPS, selector=selector)


# --- writing


async def test_a_patch_with_another_uid_is_a_conflict(cluster):
    await cluster.create(CONFIG_MAPS, named("a", data={"colour": "red"}))
    change = {"metadata": {"uid": "of-the-one-before"}, "data": {"colour": "blue"}}
    with pytest.raises(errors.Conflict, match="UID in precondition: of-the-one-before"):
        await cluster.patch(CONFIG_MAPS, "a", change, "here")
    assert (await cluster.get(CONFIG_MAPS, "a", "here"))["data"] == {"colour": "red"}


async def test_a_status_with_another_uid_is_a_conflict(cluster):
    await cluster.create(WIDGETS, named("w", spec={}))
    with pytest.raises(errors.Conflict, match="UID in precondition"):
        await cluster.replace(WIDGETS, named("w", uid="other", status={}), subresource="status")


async def test_a_status_write_leaves_everything_else(cluster):
    created = await cluster.create(WIDGETS, named("w", labels={"a": "b"}, spec={"replicas": 1}))
    bare = named("w", labels={"c": "d"}, status={"replicas": 1})
    stored = await cluster.replace(WIDGETS, bare, subresource="status")
    assert stored["metadata"]["labels"] == {"a": "b"}
    assert stored["spec"] == created["spec"]


async def test_a_patch_cannot_rename(cluster):
    await cluster.create(CONFIG_MAPS, named("a"))
    with pytest.raises(errors.BadRequest, match="does not match the name on the URL"):
        await cluster.patch(CONFIG_MAPS, "a", {"metadata": {"name": "b"}}, "here")


async def test_what_is_being_deleted_takes_no_new_finalizers(cluster):
    await cluster.create(CONFIG_MAPS, named("a", finalizers=["example.com/one"]))
    await cluster.delete(CONFIG_MAPS, "a", "here")
    change = {"metadata": {"finalizers": ["example.com/one", "example.com/two"]}}
    with pytest.raises(errors.Invalid, match="no new finalizers can be added"):
        await cluster.patch(CONFIG_MAPS, "a", change, "here")


# --- kinds


async def test_a_kind_has_its_own_rules(cluster):
    def admit(manifest):
        if "size" not in manifest.get("spec", {}):
            cause = Cause("FieldValueRequired", "Required value", "spec.size")
            raise api_errors.invalid(GADGETS, manifest["metadata"]["name"], [cause])
        return {**manifest, "spec": {"colour": "red", **manifest["spec"]}}

    cluster.register(Kind(GADGETS, admit=admit))
    created = await cluster.create(GADGETS, named("g", spec={"size": 1}))
    assert created["spec"] == {"colour": "red", "size": 1}
    with pytest.raises(errors.Invalid, match=r"spec\.size: Required value"):
        await cluster.patch(GADGETS, "g", {"spec": {"size": None}}, "here")


async def test_a_kind_cannot_come_twice(cluster):
    with pytest.raises(ValueError, match="pods is already registered"):
        cluster.register(Kind(PODS))


async def test_the_scale_shows_what_there_is_and_who_is_counted(cluster):
    await cluster.create(WIDGETS, named("w", spec={"replicas": 2}))
    status = {"status": {"replicas": 1, "selector": "a=b"}}
    await cluster.patch(WIDGETS, "w", status, "here", subresource="status")
    scale = await cluster.get(WIDGETS, "w", "here", subresource="scale")
    assert scale["apiVersion"] == "autoscaling/v1"
    assert (scale["spec"], scale["status"]) == (
        {"replicas": 2},
        {"replicas": 1, "selector": "a=b"},
    )


async def test_the_scale_can_be_replaced_by_who_has_seen_it(cluster):
    await cluster.create(WIDGETS, named("w", spec={"replicas": 2}))
    scale = await cluster.get(WIDGETS, "w", "here", subresource="scale")
    scale["spec"]["replicas"] = 5
    answer = await cluster.replace(WIDGETS, scale, subresource="scale")
    assert answer["spec"]["replicas"] == 5
    with pytest.raises(errors.Conflict):
        await cluster.replace(WIDGETS, scale, subresource="scale")


async def test_a_negative_scale_is_refused(cluster):
    await cluster.create(WIDGETS, named("w", spec={"replicas": 2}))
    with pytest.raises(errors.Invalid, match="greater than or equal to 0"):
        await cluster.patch(WIDGETS, "w", {"spec": {"replicas": -1}}, "here", subresource="scale")


async def test_a_pod_has_what_nodes_rely_on(cluster):
    created = await cluster.create(PODS, pod("p"))
    assert created["spec"]["restartPolicy"] == "Always"
    assert created["spec"]["terminationGracePeriodSeconds"] == 30
    assert created["status"] == {"phase": "Pending"}


async def test_a_secret_given_as_text_is_encoded(cluster):
    created = await cluster.create(SECRETS, named("s") | {"stringData": {"key": "value"}})
    assert created["data"] == {"key": "dmFsdWU="}
    assert "stringData" not in created


async def test_a_job_of_several_pods_is_refused(cluster):
    with pytest.raises(errors.Invalid, match=r"spec\.parallelism: Unsupported value: 2"):
        await cluster.create(JOBS, named("j", spec={"parallelism": 2}))


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        ("spec.nodeName=here", ["b"]),
        ("spec.nodeName=", ["a"]),
        ("status.phase=Running", ["b"]),
        ("status.phase!=Running,metadata.namespace=here", ["a"]),
        ("metadata.namespace=there", []),
    ],
)
async def test_pods_are_chosen_by_what_nodes_ask_for(cluster, selector, chosen):
    await cluster.create(PODS, pod("a"))
    await cluster.create(PODS, pod("b", node="here"))
    running = {"status": {"phase": "Running"}}
    await cluster.patch(PODS, "b", running, "here", subresource="status")
    listed = await cluster.list(PODS, selector=Selector(fields=selector))
    assert [each["metadata"]["name"] for each in listed.items] == chosen


async def test_events_are_chosen_by_what_they_are_about(cluster):
    for name in ("a", "b"):
        event = named(f"event-{name}") | {"involvedObject": {"name": name, "kind": "Pod"}}
        await cluster.create(EVENTS, event)
    chosen = await cluster.list(EVENTS, selector=Selector(fields="involvedObject.name=b"))
    assert [each["metadata"]["name"] for each in chosen.items] == ["event-b"]


# --- deleting pods


async def remaining(cluster):
    """Seconds of grace of the pod that is being deleted; None if it is gone."""
    try:
        metadata = (await cluster.get(PODS, "p", "here"))["metadata"]
    except errors.NotFound:
        return None
    due = moment(metadata["deletionTimestamp"]) - START
    assert due == timedelta(seconds=metadata["deletionGracePeriodSeconds"])
    return metadata["deletionGracePeriodSeconds"]


@pytest.mark.parametrize(
    ("node", "phase", "grace", "left"),
    [
        pytest.param("here", "Running", None, 30, id="a running pod has its usual grace"),
        pytest.param("here", "Running", 5, 5, id="or the one that is asked for"),
        pytest.param("here", "Running", 0, None, id="or none"),
        pytest.param("here", "Running", -1, 1, id="a negative one is a second"),
        pytest.param("here", "Pending", None, 30, id="a node may be starting it"),
        pytest.param("", "Pending", None, None, id="one that no node has goes at once"),
        pytest.param("", "Pending", 5, None, id="whatever is asked for"),
        pytest.param("here", "Succeeded", None, None, id="one that succeeded goes at once"),
        pytest.param("here", "Failed", 5, None, id="one that failed too"),
    ],
)
async def test_a_pod_is_given_time_to_end_where_it_needs_it(cluster, node, phase, grace, left):
    await cluster.create(PODS, pod("p", node=node))
    await cluster.patch(PODS, "p", {"status": {"phase": phase}}, "here", subresource="status")
    await cluster.delete(PODS, "p", "here", DeleteOptions(grace_period_seconds=grace))
    assert await remaining(cluster) == left


@pytest.mark.parametrize(
    ("again", "left"),
    [
        pytest.param(None, 30, id="asking again changes nothing"),
        pytest.param(60, 30, id="nor does more time"),
        pytest.param(5, 5, id="less does"),
        pytest.param(0, None, id="none at all is what the node says at the end"),
    ],
)
async def test_the_time_to_end_only_gets_shorter(cluster, again, left):
    await cluster.create(PODS, pod("p", node="here"))
    await cluster.delete(PODS, "p", "here")
    before = (await cluster.get(PODS, "p", "here"))["metadata"]
    await cluster.delete(PODS, "p", "here", DeleteOptions(grace_period_seconds=again))
    assert await remaining(cluster) == left
    assert before["generation"] == 2


async def test_time_that_has_passed_already_is_a_second():
    now = [START]
    cluster = a_cluster(clock=lambda: now[0])
    await cluster.create(PODS, pod("p", node="here"))
    await cluster.delete(PODS, "p", "here")
    now[0] += timedelta(seconds=20)
    await cluster.delete(PODS, "p", "here", DeleteOptions(grace_period_seconds=5))
    metadata = (await cluster.get(PODS, "p", "here"))["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == 1
    assert metadata["deletionTimestamp"] == timestamp(now[0])


async def test_a_pod_that_is_held_stays_when_its_node_is_done(cluster):
    held = pod("p", node="here")
    held["metadata"]["finalizers"] = ["example.com/count-me"]
    await cluster.create(PODS, held)
    await cluster.delete(PODS, "p", "here")
    await cluster.delete(PODS, "p", "here", DeleteOptions(grace_period_seconds=0))
    assert await remaining(cluster) == 0
    await cluster.patch(PODS, "p", {"metadata": {"finalizers": None}}, "here")
    assert await remaining(cluster) is None


async def test_a_collection_is_deleted_with_what_it_owns(cluster):
    for name in "abc":
        await cluster.create(PODS, pod(name))
    await cluster.delete_collection(PODS, "here", propagation=Propagation.FOREGROUND)
    assert (await cluster.list(PODS)).items == []


async def test_a_cluster_without_a_node_has_no_logs(cluster):
    await cluster.create(PODS, pod("p"))
    with pytest.raises(errors.ServerError, match="no node"):
        await anext(cluster.log("p", "here"))


async def test_a_made_up_name_fits_a_dns_label(cluster):
    created = await cluster.create(CONFIG_MAPS, named("", generateName="x" * 80 + "-"))
    name = created["metadata"]["name"]
    assert len(name) == 63
    assert name.startswith("x" * 58)


async def test_ten_thousand_pods_come_and_go_and_nobody_who_watches_has_to_list_again():
    cluster = a_cluster()
    owner = await cluster.create(CONFIG_MAPS, named("owner"))
    start = (await cluster.list(PODS)).resource_version
    owners = owned("", owner)["metadata"]["ownerReferences"]
    for number in range(10_000):
        each = pod(f"p{number}")
        each["metadata"]["ownerReferences"] = owners
        await cluster.create(PODS, each)
    pages = [page async for page in cluster.pages(PODS, limit=3000)]
    assert [len(page.items) for page in pages] == [3000, 3000, 3000, 1000]
    await cluster.delete(CONFIG_MAPS, "owner", "here")
    assert (await cluster.list(PODS)).items == []
    events = cluster.watch(PODS, options=WatchOptions(resource_version=start, timeout=0))
    assert len([event async for event in events]) == 20_000
