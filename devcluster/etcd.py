"""Direct requests to etcd, through the JSON gateway on its client port."""

import base64

from devcluster.endpoint import Endpoint


class EtcdError(Exception):
    """etcd refused a request."""


def revision(etcd: Endpoint) -> int:
    """The current revision, which Kubernetes calls the resource version."""
    key = base64.b64encode(b"\0").decode()
    answer = _post(etcd, "/v3/kv/range", {"key": key, "range_end": key, "count_only": True})
    return int(answer["header"]["revision"])


def compact(etcd: Endpoint, at: int) -> None:
    """Compact all revisions before this one, and return when it is done."""
    _post(etcd, "/v3/kv/compaction", {"revision": str(at), "physical": True})


def _post(etcd: Endpoint, path: str, body: dict[str, object]) -> dict[str, dict[str, str]]:
    answer = etcd.request("POST", path, body)
    if answer.status != 200:
        raise EtcdError(f"etcd answered {answer.status} to {path}: {answer.body.decode()}")
    content: dict[str, dict[str, str]] = answer.json()
    return content
