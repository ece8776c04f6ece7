"""The users of an API server: client certificates, created on first use."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from devcluster import kubeconfig
from devcluster.endpoint import Endpoint
from devcluster.pki import KeyPair, Pki

ADMIN = "admin"
_ADMIN_GROUPS = ("system:masters",)


@dataclass(frozen=True)
class Users:
    """The users of one API server; their files are in `directory`."""

    directory: Path
    pki: Pki
    address: str
    port: int

    @property
    def url(self) -> str:
        return f"https://{self.address}:{self.port}"

    @property
    def ca(self) -> Path:
        return self.pki.pair("ca").certificate

    def kubeconfig(self, user: str = ADMIN, groups: Sequence[str] | None = None) -> Path:
        """The kubeconfig of a user. Only `admin` is in a group (system:masters) by default."""
        path = self.directory / f"{_file_name(user, groups)}.kubeconfig"
        if not path.exists():
            kubeconfig.write(
                path,
                server=self.url,
                ca=self.ca,
                user=user,
                credentials=self._credentials(user, groups),
            )
        return path

    def endpoint(self, user: str = ADMIN, groups: Sequence[str] | None = None) -> Endpoint:
        """The API server as this user sees it."""
        files = self._credentials(user, groups)
        return Endpoint(self.address, self.port, self.ca, files.certificate, files.key)

    def anonymous_endpoint(self) -> Endpoint:
        """The API server without credentials."""
        return Endpoint(self.address, self.port, self.ca)

    def _credentials(self, user: str, groups: Sequence[str] | None) -> KeyPair:
        stem = self.directory / _file_name(user, groups)
        files = KeyPair(stem.with_name(f"{stem.name}.crt"), stem.with_name(f"{stem.name}.key"))
        if not files.certificate.exists():
            self.directory.mkdir(mode=0o700, exist_ok=True)
            self.pki.authority.issue_client(stem, user, _groups(user, groups))
        return files


def _groups(user: str, groups: Sequence[str] | None) -> Sequence[str]:
    if groups is not None:
        return groups
    return _ADMIN_GROUPS if user == ADMIN else ()


def _file_name(user: str, groups: Sequence[str] | None) -> str:
    # Colons (system:serviceaccount:…) would split a KUBECONFIG into several paths.
    readable = re.sub(r"[^\w-]", "_", user)
    identity = "\0".join((user, *_groups(user, groups)))
    return f"{readable}-{hashlib.sha256(identity.encode()).hexdigest()[:8]}"
