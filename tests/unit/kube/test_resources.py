import pytest

from mpi_operator.kube.resources import JOBS, LEASES, NAMESPACES, NODES, PODS, Key, Resource


@pytest.mark.parametrize(
    ("resource", "namespace", "path"),
    [
        pytest.param(PODS, "a", "/api/v1/namespaces/a/pods", id="the core group is under /api"),
        pytest.param(JOBS, "a", "/apis/batch/v1/namespaces/a/jobs", id="others are under /apis"),
        pytest.param(PODS, "", "/api/v1/pods", id="no namespace means all"),
        pytest.param(PODS, None, "/api/v1/pods", id="None means all"),
        pytest.param(NODES, "", "/api/v1/nodes", id="a cluster-wide kind"),
        pytest.param(NODES, "a", "/api/v1/nodes", id="a cluster-wide kind has no namespace"),
    ],
)
def test_where_objects_are_listed_and_created(resource, namespace, path):
    assert resource.collection_path(namespace) == path


@pytest.mark.parametrize(
    ("resource", "name", "namespace", "subresource", "path"),
    [
        pytest.param(PODS, "x", "a", None, "/api/v1/namespaces/a/pods/x", id="in a namespace"),
        pytest.param(PODS, "x", "a", "", "/api/v1/namespaces/a/pods/x", id="no subresource"),
        pytest.param(PODS, "x", "a", "log", "/api/v1/namespaces/a/pods/x/log", id="a subresource"),
        pytest.param(NAMESPACES, "x", "", None, "/api/v1/namespaces/x", id="cluster-wide"),
    ],
)
def test_where_one_object_lives(resource, name, namespace, subresource, path):
    assert resource.path(name, namespace, subresource) == path


@pytest.mark.parametrize(
    ("name", "segment"),
    [
        ("a/b", "a%2Fb"),
        ("../secrets/x", "..%2Fsecrets%2Fx"),
        ("a?watch=true", "a%3Fwatch%3Dtrue"),
        ("a#b", "a%23b"),
        ("100%", "100%25"),
        ("%2e%2e", "%252e%252e"),
        ("a b", "a%20b"),
        ("é", "%C3%A9"),
        ("a\nb", "a%0Ab"),
        ("system:node", "system:node"),
    ],
)
def test_a_name_stays_one_segment_of_the_path(name, segment):
    assert PODS.path(name, "ns") == f"/api/v1/namespaces/ns/pods/{segment}"
    assert PODS.path("x", name) == f"/api/v1/namespaces/{segment}/pods/x"


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_that_would_be_another_path_is_refused(name):
    with pytest.raises(ValueError, match="cannot be the name of a Kubernetes object"):
        PODS.path(name, "ns")


@pytest.mark.parametrize("namespace", [".", ".."])
def test_a_namespace_that_would_be_another_path_is_refused(namespace):
    with pytest.raises(ValueError, match="cannot be the name of a Kubernetes object"):
        PODS.collection_path(namespace)


@pytest.mark.parametrize("namespace", ["", None])
def test_one_object_of_a_namespaced_kind_needs_a_namespace(namespace):
    with pytest.raises(ValueError, match="pods 'x': the namespace is missing"):
        PODS.path("x", namespace)


def test_kinds_and_objects_read_well():
    assert [str(PODS), str(LEASES)] == ["pods", "leases.coordination.k8s.io"]
    assert [str(Key("a", "x")), str(Key("", "x"))] == ["a/x", "x"]


@pytest.mark.parametrize(
    ("group", "api_version"), [("", "v1"), ("batch", "batch/v1"), ("a.b.c", "a.b.c/v1")]
)
def test_the_api_version_of_a_kind(group, api_version):
    assert Resource(group, "v1", "things", "Thing").api_version == api_version
