import socket
import ssl
from pathlib import Path

import pytest

from devcluster import ports
from devcluster.binaries import TOOLS
from devcluster.control_plane import APISERVER, ETCD, ControlPlane
from devcluster.endpoint import Endpoint
from devcluster.readiness import NotReady
from tests.support.waiting import block_until

pytestmark = pytest.mark.api

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name: str, **metadata: object) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


def names(control_plane: ControlPlane) -> set[str]:
    listed = control_plane.endpoint().request("GET", CONFIG_MAPS).json()["items"]
    return {item["metadata"]["name"] for item in listed}


def test_the_pinned_version_runs(control_plane):
    version = control_plane.endpoint().request("GET", "/version").json()["gitVersion"]
    assert version == TOOLS[APISERVER].version


def test_a_client_that_trusts_another_authority_refuses_to_connect(control_plane):
    other_ca = control_plane.directory / "pki" / "etcd-ca.crt"
    endpoint = Endpoint("127.0.0.1", control_plane.ports[APISERVER], other_ca)
    with pytest.raises(ssl.SSLCertVerificationError):
        endpoint.request("GET", "/readyz")


def test_strangers_may_do_nothing(control_plane):
    assert control_plane.anonymous_endpoint().request("GET", CONFIG_MAPS).status == 403


def test_users_may_do_what_rbac_says(control_plane):
    eve = control_plane.endpoint("eve", ["readers"])
    assert eve.request("GET", CONFIG_MAPS).status == 403
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "readers-view"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "readers"}],
    }
    bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"
    assert control_plane.endpoint().request("POST", bindings, binding).status == 201
    block_until(lambda: eve.request("GET", CONFIG_MAPS).status == 200)
    assert eve.request("POST", CONFIG_MAPS, config_map("evil")).status == 403


def test_a_kubernetes_certificate_does_not_open_etcd(control_plane):
    admin = control_plane.endpoint()
    etcd = Endpoint(
        "127.0.0.1",
        control_plane.ports[ETCD],
        control_plane.directory / "pki" / "etcd-ca.crt",
        admin.certificate,
        admin.key,
    )
    with pytest.raises(OSError, match=r"alert|reset|EOF"):
        etcd.request("GET", "/health")


def test_the_controller_manager_collects_garbage(control_plane):
    admin = control_plane.endpoint()
    owner = admin.request("POST", CONFIG_MAPS, config_map("owner")).json()
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner"}
    reference["uid"] = owner["metadata"]["uid"]
    admin.request("POST", CONFIG_MAPS, config_map("owned", ownerReferences=[reference]))
    assert "owned" in names(control_plane)
    admin.request("DELETE", f"{CONFIG_MAPS}/owner")
    block_until(lambda: "owned" not in names(control_plane))


def test_two_at_once_know_nothing_of_each_other(control_plane, minimal):
    minimal.endpoint().request("POST", CONFIG_MAPS, config_map("only-there"))
    assert "only-there" in names(minimal)
    assert "only-there" not in names(control_plane)


def test_without_a_controller_manager_a_pod_needs_no_service_account(minimal):
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "lonely"},
        "spec": {"containers": [{"name": "main", "image": "none"}]},
    }
    assert minimal.endpoint().request("POST", "/api/v1/namespaces/default/pods", pod).status == 201


def test_a_port_that_is_taken_meanwhile_is_exchanged(state, programs, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as squatter:
        taken = squatter.getsockname()[1]
        offers = iter([taken])
        free_port = ports.free_port
        monkeypatch.setattr(ports, "free_port", lambda: next(offers, None) or free_port())
        with ControlPlane() as control_plane:
            assert taken not in control_plane.ports.values()


def test_a_flag_that_the_api_server_does_not_know_is_shown(state, programs):
    control_plane = ControlPlane(apiserver_args=["--no-such-flag"])
    with pytest.raises(NotReady, match=r"(?s)kube-apiserver exited.*unknown flag: --no-such-flag"):
        control_plane.start()
    assert list((state / "mpi-operator" / "devcluster").glob("*/")) == []


def test_a_stopped_control_plane_leaves_nothing(state, programs):
    with ControlPlane(controller_manager=True, scheduler=True) as control_plane:
        directory: Path = control_plane.directory
        processes = control_plane.run.processes()
        assert all(each.is_alive for each in processes)
    assert not directory.exists()
    assert not any(each.is_alive for each in processes)
