"""The key pair with which the pods of a job, and only those, reach each other."""

from base64 import b64encode
from dataclasses import dataclass, field
from posixpath import normpath

from mpi_operator.api import MPIJob, labels, names
from mpi_operator.kube.resources import SECRETS, Manifest

from .ownership import metadata
from .volumes import Volume

_PRIVATE = "ssh-privatekey"  # Kubernetes wants this key in a Secret of this type
_PUBLIC = "ssh-publickey"
_FILES = {"id_rsa": _PRIVATE, "id_rsa.pub": _PUBLIC, "authorized_keys": _PUBLIC}


@dataclass(frozen=True)
class KeyPair:
    """Both keys as OpenSSH writes them to files."""

    private: str = field(repr=False)
    public: str


def ssh_secret(job: MPIJob, keys: KeyPair) -> Manifest:
    """The Secret with a key pair."""
    return {
        "apiVersion": SECRETS.api_version,
        "kind": SECRETS.kind,
        "metadata": metadata(job, names.ssh_secret(job), labels.object_labels(job)),
        "type": "kubernetes.io/ssh-auth",
        "data": {_PRIVATE: _base64(keys.private), _PUBLIC: _base64(keys.public)},
    }


def ssh_volume(job: MPIJob) -> Volume:
    """The same as the `.ssh` directory of who runs the job."""
    path = job.spec.ssh_auth_mount_path
    # The files belong to root. For root ssh insists on 0600; anybody else could not read that, and
    # ssh does not mind a mode of files that are not the user's own.
    mode = {"defaultMode": 0o600} if normpath(path) == "/root/.ssh" else {}
    items = [{"key": key, "path": file} for file, key in _FILES.items()]
    secret = {"secretName": names.ssh_secret(job), "items": items, **mode}
    return Volume("ssh-auth", {"secret": secret}, path)


def _base64(text: str) -> str:
    return b64encode(text.encode()).decode()
