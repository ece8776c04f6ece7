"""The local cluster beyond the contract of every client: error messages, and what pods need."""

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


# --- objects


async def test_changing_a_request_or_a_response_does_not_change_the_store(cluster):
    given = named("a", data={"colour": "red"})
    created = await cluster.create(CONFIG_MAPS, given)
    given["data"]["colour"] = created["data"]["colour"] = "blue"
    [listed] = (await cluster.list(CONFIG_MAPS)).items
    listed["data"]["colour"] = "green"
    assert (await cluster.get(CONFIG_MAPS, "a", "here"))["data"] == {"colour": "red"}


async def test_null_fields_are_left_out(cluster):
    spec = {"containers": [{"name": "main", "args": None}], "volumes": None}
    created = await cluster.create(PODS, named("a", labels=None, spec=spec))
    assert created["spec"]["containers"] == [{"name": "main"}]
    assert "volumes" not in created["spec"]
    assert "labels" not in created["metadata"]


async def test_a_client_cannot_set_the_metadata_of_the_server(cluster):
    wanted: dict[str, Any] = {"uid": "mine", "generation": 7, "deletionTimestamp": timestamp(START)}
    created = await cluster.create(WIDGETS, named("w", spec={}, **wanted))
    metadata = created["metadata"]
    assert metadata["uid"] != "mine"
    assert metadata["generation"] == 1
    assert "deletionTimestamp" not in metadata
    assert metadata["creationTimestamp"] == timestamp(START)


async def test_a_cluster_scoped_object_has_no_namespace(cluster):
    await cluster.create(NODES, named("n", namespace="ignored"))
    assert "namespace" not in (await cluster.get(NODES, "n"))["metadata"]


# --- errors, with the messages of an API server


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
async def test_an_invalid_name_is_refused(cluster, name, words):
    with pytest.raises(errors.Invalid, match=words) as caught:
        await cluster.create(CONFIG_MAPS, named(name))
    assert caught.value.causes[0].field == "metadata.name"


async def test_an_invalid_namespace_is_refused(cluster):
    with pytest.raises(errors.Invalid, match=r"metadata\.namespace: Invalid value"):
        await cluster.create(CONFIG_MAPS, named("a", namespace="No Such"))


async def test_the_messages_are_those_of_kubernetes(cluster):
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


async def test_a_kind_that_is_not_served_is_not_found(cluster):
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
async def test_an_invalid_selector_is_a_bad_request(cluster, selector):
    with pytest.raises(errors.BadRequest):
        await cluster.list(CONFIG_MAPS, selector=selector)


# --- updates


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


async def test_a_status_update_changes_nothing_else(cluster):
    created = await cluster.create(WIDGETS, named("w", labels={"a": "b"}, spec={"replicas": 1}))
    bare = named("w", labels={"c": "d"}, status={"replicas": 1})
    stored = await cluster.replace(WIDGETS, bare, subresource="status")
    assert stored["metadata"]["labels"] == {"a": "b"}
    assert stored["spec"] == created["spec"]


async def test_a_patch_cannot_rename(cluster):
    await cluster.create(CONFIG_MAPS, named("a"))
    with pytest.raises(errors.BadRequest, match="does not match the name on the URL"):
        await cluster.patch(CONFIG_MAPS, "a", {"metadata": {"name": "b"}}, "here")


async def test_an_object_being_deleted_takes_no_new_finalizers(cluster):
    await cluster.create(CONFIG_MAPS, named("a", finalizers=["example.com/one"]))
    await cluster.delete(CONFIG_MAPS, "a", "here")
    change = {"metadata": {"finalizers": ["example.com/one", "example.com/two"]}}
    with pytest.raises(errors.Invalid, match="no new finalizers can be added"):
        await cluster.patch(CONFIG_MAPS, "a", change, "here")


# --- kinds


async def test_a_kind_has_its_own_admission(cluster):
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


async def test_a_kind_cannot_be_registered_twice(cluster):
    with pytest.raises(ValueError, match="pods is already registered"):
        cluster.register(Kind(PODS))


async def test_the_scale_has_current_replicas_and_selector(cluster):
    await cluster.create(WIDGETS, named("w", spec={"replicas": 2}))
    status = {"status": {"replicas": 1, "selector": "a=b"}}
    await cluster.patch(WIDGETS, "w", status, "here", subresource="status")
    scale = await cluster.get(WIDGETS, "w", "here", subresource="scale")
    assert scale["apiVersion"] == "autoscaling/v1"
    assert (scale["spec"], scale["status"]) == (
        {"replicas": 2},
        {"replicas": 1, "selector": "a=b"},
    )


async def test_the_scale_can_be_replaced_at_its_latest_version(cluster):
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


async def test_a_pod_has_the_defaults_that_nodes_rely_on(cluster):
    created = await cluster.create(PODS, pod("p"))
    assert created["spec"]["restartPolicy"] == "Always"
    assert created["spec"]["terminationGracePeriodSeconds"] == 30
    assert created["status"] == {"phase": "Pending"}


async def test_string_data_of_a_secret_is_encoded(cluster):
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
async def test_pods_are_selected_by_the_fields_that_nodes_use(cluster, selector, chosen):
    await cluster.create(PODS, pod("a"))
    await cluster.create(PODS, pod("b", node="here"))
    running = {"status": {"phase": "Running"}}
    await cluster.patch(PODS, "b", running, "here", subresource="status")
    listed = await cluster.list(PODS, selector=Selector(fields=selector))
    assert [each["metadata"]["name"] for each in listed.items] == chosen


async def test_events_are_selected_by_their_involved_object(cluster):
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
        pytest.param("here", "Running", None, 30, id="a running pod has its own grace period"),
        pytest.param("here", "Running", 5, 5, id="or the requested one"),
        pytest.param("here", "Running", 0, None, id="or none"),
        pytest.param("here", "Running", -1, 1, id="a negative one is 1s"),
        pytest.param("here", "Pending", None, 30, id="a pending pod on a node has one too"),
        pytest.param("", "Pending", None, None, id="a pod on no node is removed at once"),
        pytest.param("", "Pending", 5, None, id="whatever is requested"),
        pytest.param("here", "Succeeded", None, None, id="a succeeded pod is removed at once"),
        pytest.param("here", "Failed", 5, None, id="and so is a failed one"),
    ],
)
async def test_a_pod_that_needs_it_has_a_grace_period(cluster, node, phase, grace, left):
    await cluster.create(PODS, pod("p", node=node))
    await cluster.patch(PODS, "p", {"status": {"phase": phase}}, "here", subresource="status")
    await cluster.delete(PODS, "p", "here", DeleteOptions(grace_period_seconds=grace))
    assert await remaining(cluster) == left


@pytest.mark.parametrize(
    ("again", "left"),
    [
        pytest.param(None, 30, id="deleting again changes nothing"),
        pytest.param(60, 30, id="nor does a longer one"),
        pytest.param(5, 5, id="a shorter one does"),
        pytest.param(0, None, id="0 is the confirmation of the kubelet"),
    ],
)
async def test_a_grace_period_only_gets_shorter(cluster, again, left):
    await cluster.create(PODS, pod("p", node="here"))
    await cluster.delete(PODS, "p", "here")
    before = (await cluster.get(PODS, "p", "here"))["metadata"]
    await cluster.delete(PODS, "p", "here", DeleteOptions(grace_period_seconds=again))
    assert await remaining(cluster) == left
    assert before["generation"] == 2


async def test_a_grace_period_that_has_passed_already_is_1s():
    now = [START]
    cluster = a_cluster(clock=lambda: now[0])
    await cluster.create(PODS, pod("p", node="here"))
    await cluster.delete(PODS, "p", "here")
    now[0] += timedelta(seconds=20)
    await cluster.delete(PODS, "p", "here", DeleteOptions(grace_period_seconds=5))
    metadata = (await cluster.get(PODS, "p", "here"))["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == 1
    assert metadata["deletionTimestamp"] == timestamp(now[0])


async def test_a_pod_with_a_finalizer_stays_when_its_node_is_done(cluster):
    held = pod("p", node="here")
    held["metadata"]["finalizers"] = ["example.com/count-me"]
    await cluster.create(PODS, held)
    await cluster.delete(PODS, "p", "here")
    await cluster.delete(PODS, "p", "here", DeleteOptions(grace_period_seconds=0))
    assert await remaining(cluster) == 0
    await cluster.patch(PODS, "p", {"metadata": {"finalizers": None}}, "here")
    assert await remaining(cluster) is None


async def test_a_collection_is_deleted_with_its_dependents(cluster):
    for name in "abc":
        await cluster.create(PODS, pod(name))
    await cluster.delete_collection(PODS, "here", propagation=Propagation.FOREGROUND)
    assert (await cluster.list(PODS)).items == []


async def test_a_cluster_without_a_node_has_no_logs(cluster):
    await cluster.create(PODS, pod("p"))
    with pytest.raises(errors.ServerError, match="no node"):
        await anext(cluster.log("p", "here"))


async def test_a_generated_name_fits_a_dns_label(cluster):
    created = await cluster.create(CONFIG_MAPS, named("", generateName="x" * 80 + "-"))
    name = created["metadata"]["name"]
    assert len(name) == 63
    assert name.startswith("x" * 58)


async def test_ten_thousand_pods_come_and_go_and_no_watch_expires():
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


@pytest.mark.parametrize("field", ["labels", "annotations"])
async def test_metadata_of_another_type_is_refused(field):
    cluster = a_cluster()
    odd = {"metadata": {"name": "odd", "namespace": "lab", field: {"a": 1}}}
    with pytest.raises(errors.BadRequest, match=f"metadata.{field}"):
        await cluster.create(CONFIG_MAPS, odd)
