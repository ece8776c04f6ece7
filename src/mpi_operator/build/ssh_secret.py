"""The Secret with the SSH key pair that the pods of one job share."""

from base64 import b64encode
from dataclasses import dataclass, field
from posixpath import normpath

from mpi_operator.api import MPIJob, labels, names
from mpi_operator.kube.resources import SECRETS, Manifest

from .ownership import metadata
from .volumes import Volume

_PRIVATE = "ssh-privatekey"  # required in a Secret of type kubernetes.io/ssh-auth
_PUBLIC = "ssh-publickey"
_FILES = {"id_rsa": _PRIVATE, "id_rsa.pub": _PUBLIC, "authorized_keys": _PUBLIC}


@dataclass(frozen=True)
class KeyPair:
    """Both keys in the file format of OpenSSH."""

    private: str = field(repr=False)
    public: str


def ssh_secret(job: MPIJob, keys: KeyPair) -> Manifest:
    """The Secret of a job."""
    return {
        "apiVersion": SECRETS.api_version,
        "kind": SECRETS.kind,
        "metadata": metadata(job, names.ssh_secret(job), labels.object_labels(job)),
        "type": "kubernetes.io/ssh-auth",
        "data": {_PRIVATE: _base64(keys.private), _PUBLIC: _base64(keys.public)},
    }


def ssh_volume(job: MPIJob) -> Volume:
    """The Secret as the `.ssh` directory of the user that the containers run as."""
    path = job.spec.ssh_auth_mount_path
    # The files belong to root. As root, ssh insists on mode 0600. Other users could not read such
    # files, and ssh accepts any mode of files that belong to someone else.
    mode = {"defaultMode": 0o600} if normpath(path) == "/root/.ssh" else {}
    items = [{"key": key, "path": file} for file, key in _FILES.items()]
    secret = {"secretName": names.ssh_secret(job), "items": items, **mode}
    return Volume("ssh-auth", {"secret": secret}, path)


def _base64(text: str) -> str:
    return b64encode(text.encode()).decode()
