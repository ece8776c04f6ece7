from pathlib import Path

import pytest

from devcluster import components
from devcluster.pki import Pki

PKI = Pki(Path("/pki"))


def apiserver(
    *, address: str = "127.0.0.1", with_service_accounts: bool = True, extra: tuple[str, ...] = ()
) -> list[str]:
    return components.apiserver(
        Path("kube-apiserver"),
        pki=PKI,
        address=address,
        port=6443,
        etcd_port=2379,
        with_service_accounts=with_service_accounts,
        extra=extra,
    )


def test_what_the_caller_adds_comes_last_and_so_wins():
    assert apiserver(extra=("--secure-port=1",))[-1] == "--secure-port=1"


def test_pods_need_service_accounts_only_where_they_are_created():
    flag = "--disable-admission-plugins=ServiceAccount"
    assert flag not in apiserver(with_service_accounts=True)
    assert flag in apiserver(with_service_accounts=False)


@pytest.mark.parametrize(
    ("address", "is_hidden"),
    [("127.0.0.1", True), ("172.30.0.1", False)],
    ids=["no pod can reach a loopback address", "pods can reach other addresses"],
)
def test_the_service_kubernetes_points_only_where_pods_can_go(address, is_hidden):
    assert ("--endpoint-reconciler-type=none" in apiserver(address=address)) is is_hidden
