"""Kubeconfig files that carry their certificates inside, so that they can be copied anywhere."""

import base64
import os
from pathlib import Path

import yaml

from devcluster.pki import KeyPair


def write(path: Path, *, server: str, ca: Path, user: str, credentials: KeyPair) -> None:
    """Store a kubeconfig for one user with a client certificate, readable by its owner only."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "devcluster",
                "cluster": {"server": server, "certificate-authority-data": _base64(ca)},
            }
        ],
        "users": [
            {
                "name": user,
                "user": {
                    "client-certificate-data": _base64(credentials.certificate),
                    "client-key-data": _base64(credentials.key),
                },
            }
        ],
        "contexts": [{"name": "devcluster", "context": {"cluster": "devcluster", "user": user}}],
        "current-context": "devcluster",
    }
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        yaml.safe_dump(content, file, sort_keys=False)


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
