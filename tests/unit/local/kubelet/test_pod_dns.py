"""Names and addresses of pods."""

from mpi_operator.kube.resources import Key
from mpi_operator.local.kubelet.pod_dns import PodDNS, names_of
from tests.unit.local.kubelet.manifests import make_pod


def worker(index=0, name=""):
    host = f"pi-worker-{index}"
    return make_pod(name or host, hostname=host, subdomain="pi")


def test_names_of_a_worker():
    assert names_of(worker(), "cluster.local") == [
        "pi-worker-0.pi.default.svc.cluster.local",
        "pi-worker-0.pi.default.svc",
        "pi-worker-0.pi.default",
        "pi-worker-0.pi",
        "pi-worker-0",
    ]


def test_a_pod_is_found_by_all_its_names(tmp_path):
    hosts = PodDNS(tmp_path)
    hosts.add(worker())
    for name in names_of(worker(), "cluster.local"):
        assert hosts.find("default", name) == Key("default", "pi-worker-0")
    assert hosts.find("other", "pi-worker-0") is None


def test_a_host_keeps_its_address(tmp_path):
    hosts = PodDNS(tmp_path)
    first, other = hosts.add(worker(0, "pod-a")), hosts.add(worker(1))
    hosts.remove(Key("default", "pod-a"))
    assert hosts.find("default", "pi-worker-0") is None
    assert hosts.add(worker(0, "pod-b")) == first != other
    assert hosts.find("default", "pi-worker-0") == Key("default", "pod-b")
    assert hosts.file("default").read_text().count("pi-worker-0.pi.default.svc ") == 1


def test_the_file_has_the_machine_and_the_pods(tmp_path):
    hosts = PodDNS(tmp_path)
    address = hosts.add(worker())
    lines = hosts.file("default").read_text().splitlines()
    assert any("localhost" in line for line in lines)
    assert lines[-1].startswith(f"{address} pi-worker-0.pi.default.svc.cluster.local ")


def test_known_hosts_are_short(tmp_path):
    hosts = PodDNS(tmp_path)
    hosts.add(worker(1))
    hosts.add(worker(0))
    assert hosts.known("default") == ["pi-worker-0", "pi-worker-1"]
