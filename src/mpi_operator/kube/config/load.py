"""Find the configuration to use, as kubectl does."""

import os
from collections.abc import Iterator
from pathlib import Path

from mpi_operator.kube.errors import ConfigError

from .address import parse_namespace
from .config import Config, Credential, Credentials, FixedCredentials
from .exec_plugin import ExecCluster, exec_config
from .in_cluster import in_cluster, is_in_cluster
from .kubeconfig import Kubeconfig, Selection, merged, read_kubeconfig, select
from .kubeconfig_entries import credentials_of, proxy_of, server_of, tls_of
from .tls import TLS


def load(
    *,
    kubeconfig: str | Path | None = None,
    context: str | None = None,
    cluster: str | None = None,
    user: str | None = None,
) -> Config:
    """The configuration that kubectl would use here:

    1. the file `kubeconfig`, if it is given (and then it must exist);
    2. else the files in the variable KUBECONFIG, merged; without it, `~/.kube/config`;
    3. else, if those are empty and no argument was given, the service account of this pod.

    So a kubeconfig wins over the service account, as in client-go: it was mounted to be used.
    """
    asked_for = kubeconfig or context or cluster or user
    found = _read(kubeconfig)
    if found.is_empty and not asked_for and is_in_cluster():
        return in_cluster()
    return _config(found, context=context, cluster=cluster, user=user)


def from_kubeconfig(
    path: str | Path | None = None,
    *,
    context: str | None = None,
    cluster: str | None = None,
    user: str | None = None,
) -> Config:
    """The configuration in this file, or else in KUBECONFIG or `~/.kube/config`."""
    return _config(_read(path), context=context, cluster=cluster, user=user)


def _read(path: str | Path | None) -> Kubeconfig:
    if path:
        return read_kubeconfig(Path(os.path.expanduser(path)))
    return merged(_existing(_default_files()))


def _default_files() -> list[Path]:
    """Each file once, in order, without the empty entry of a trailing colon."""
    names = os.environ.get("KUBECONFIG", "")
    # Not Path.home(), which raises in a container whose user has no home.
    listed = names.split(os.pathsep) if names else [os.path.expanduser("~/.kube/config")]
    return [Path(name) for name in dict.fromkeys(listed) if name]


def _existing(paths: list[Path]) -> Iterator[Kubeconfig]:
    return (read_kubeconfig(path) for path in paths if not _is_missing(path))


def _is_missing(path: Path) -> bool:
    """Whether there is no such file. One without permission is not missing: reading it fails."""
    try:
        path.stat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def _config(
    found: Kubeconfig, *, context: str | None, cluster: str | None, user: str | None
) -> Config:
    if found.is_empty:
        looked = ", ".join(map(str, found.files or _default_files()))
        raise ConfigError(
            f"no Kubernetes configuration found; looked at: {looked}. "
            "Set KUBECONFIG to a kubeconfig file, or run in a pod with a service account"
        )
    selection = select(found, context=context, cluster=cluster, user=user)
    server, tls = server_of(selection.cluster), tls_of(selection.cluster)
    return Config(
        server=server,
        namespace=_namespace(selection),
        tls=tls,
        credentials=_credentials(selection, server, tls),
        proxy=proxy_of(selection.cluster, server, os.environ),
    )


def _credentials(selection: Selection, server: str, tls: TLS) -> Credentials:
    if selection.user is None:
        return FixedCredentials(Credential())
    cluster = selection.cluster.value
    described = ExecCluster(
        server=server,
        tls=tls,
        proxy=cluster.proxy_url,
        disable_compression=bool(cluster.disable_compression),
        config=exec_config(cluster),
    )
    return credentials_of(selection.user, described)


def _namespace(selection: Selection) -> str:
    context = selection.context
    if context is None or not context.value.namespace:
        return "default"
    return parse_namespace(context.value.namespace, context.where)
