"""The command lines of the control plane, as pure functions."""

import ipaddress
from collections.abc import Sequence
from pathlib import Path

from devcluster.pki import Pki

SERVICE_RANGE = "10.96.0.0/16"
SERVICE_ADDRESS = "10.96.0.1"  # of the service `kubernetes`: always the first of the range

# With the defaults (20 to 50 requests a second) tests would measure client-side throttling.
_CLIENT_LIMITS = {"kube-api-qps": "2000", "kube-api-burst": "4000"}


def etcd(binary: Path, *, pki: Pki, data: Path, port: int, peer_port: int) -> list[str]:
    """A single etcd without fsync: fast, and nothing here has to survive a power loss."""
    client, peer = f"https://127.0.0.1:{port}", f"https://127.0.0.1:{peer_port}"
    files = pki.pair("etcd")
    authority = pki.pair("etcd-ca").certificate
    return _command(
        binary,
        {
            "name": "default",
            "data-dir": data,
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"default={peer}",
            "cert-file": files.certificate,
            "key-file": files.key,
            "trusted-ca-file": authority,
            "client-cert-auth": "true",
            "peer-cert-file": files.certificate,
            "peer-key-file": files.key,
            "peer-trusted-ca-file": authority,
            "peer-client-cert-auth": "true",
            "quota-backend-bytes": str(8 << 30),
            "unsafe-no-fsync": "true",
            "log-level": "warn",
        },
    )


def apiserver(
    binary: Path,
    *,
    pki: Pki,
    address: str,
    port: int,
    etcd_port: int,
    with_service_accounts: bool,
    extra: Sequence[str] = (),
) -> list[str]:
    """The API server: TLS, RBAC, client certificates, service account tokens, aggregation."""
    serving, etcd_files, proxy = pki.pair("serving"), pki.pair("etcd"), pki.pair("front-proxy")
    flags: dict[str, str | Path] = {
        "bind-address": address,
        "advertise-address": address,
        "secure-port": str(port),
        "etcd-servers": f"https://127.0.0.1:{etcd_port}",
        "etcd-cafile": pki.pair("etcd-ca").certificate,
        "etcd-certfile": etcd_files.certificate,
        "etcd-keyfile": etcd_files.key,
        "tls-cert-file": serving.certificate,
        "tls-private-key-file": serving.key,
        "client-ca-file": pki.pair("ca").certificate,
        "authorization-mode": "Node,RBAC",
        "allow-privileged": "true",
        "service-cluster-ip-range": SERVICE_RANGE,
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": pki.service_account_public_key,
        "service-account-signing-key-file": pki.service_account_key,
        "requestheader-client-ca-file": pki.pair("front-proxy-ca").certificate,
        "requestheader-allowed-names": "front-proxy",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-username-headers": "X-Remote-User",
        "proxy-client-cert-file": proxy.certificate,
        "proxy-client-key-file": proxy.key,
        "enable-aggregator-routing": "true",
        "kubelet-preferred-address-types": "InternalIP",
        # Otherwise a graceful shutdown waits a minute for the clients to end their watches.
        "shutdown-watch-termination-grace-period": "1s",
    }
    if ipaddress.ip_address(address).is_loopback:
        # Kubernetes refuses loopback addresses as endpoints of the service `kubernetes`.
        flags["endpoint-reconciler-type"] = "none"
    if not with_service_accounts:
        # Only the controller manager creates the service accounts that this plugin insists on.
        flags["disable-admission-plugins"] = "ServiceAccount"
    return [*_command(binary, flags), *extra]


def audit_flags(policy: Path, log: Path) -> list[str]:
    """Flags for an audit log in one file."""
    return [f"--audit-policy-file={policy}", f"--audit-log-path={log}", "--audit-log-maxsize=0"]


def controller_manager(binary: Path, *, pki: Pki, kubeconfig: Path, port: int) -> list[str]:
    """Garbage collection, namespaces, service accounts, jobs and the rest."""
    authority = pki.pair("ca")
    return _command(
        binary,
        {
            **_client(kubeconfig, pki, port),
            "service-account-private-key-file": pki.service_account_key,
            "use-service-account-credentials": "true",
            "root-ca-file": authority.certificate,
            "cluster-signing-cert-file": authority.certificate,
            "cluster-signing-key-file": authority.key,
        },
    )


def scheduler(binary: Path, *, pki: Pki, kubeconfig: Path, port: int) -> list[str]:
    """Binds pods to nodes, if there are any."""
    return _command(binary, _client(kubeconfig, pki, port))


def _client(kubeconfig: Path, pki: Pki, port: int) -> dict[str, str | Path]:
    serving = pki.pair("serving")
    return {
        "kubeconfig": kubeconfig,
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        "bind-address": "127.0.0.1",
        "secure-port": str(port),
        "tls-cert-file": serving.certificate,
        "tls-private-key-file": serving.key,
        "leader-elect": "false",
        **_CLIENT_LIMITS,
    }


def _command(binary: Path, flags: dict[str, str | Path]) -> list[str]:
    return [str(binary), *(f"--{name}={value}" for name, value in flags.items())]
