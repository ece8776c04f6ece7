"""A job by hand: a launcher and two workers on different nodes, with a key pair, and no operator.

So what works here is the merit of the images alone.
"""

import base64
import shlex
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from devcluster.cluster import Cluster
from tests.support.pods import RESTRICTED, a_service, await_ready, create, shell

SERVICE = "crew"
WORKERS = ("worker-0", "worker-1")
LAUNCHER = "launcher"


@dataclass(frozen=True)
class Identity:
    """Who the pods run as, and what they may."""

    home: str
    security: dict[str, Any] = field(default_factory=dict)
    has_keys: bool = True

    @property
    def is_root(self) -> bool:
        return self.home == "/root"


# All that can be taken from a pod: also a file system that it could write.
HELPLESS = RESTRICTED | {"readOnlyRootFilesystem": True}
ROOT = Identity("/root")
ROOT_WITHOUT_KEYS = Identity("/root", has_keys=False)
MPIUSER = Identity("/home/mpiuser", {"runAsUser": 1000})
ANY_UID = Identity("/home/mpiuser", HELPLESS | {"runAsUser": 12345, "runAsGroup": 0})
ANY_UID_WITHOUT_KEYS = Identity(ANY_UID.home, ANY_UID.security, has_keys=False)
ANY_UID_AND_GROUP = Identity("/home/mpiuser", HELPLESS | {"runAsUser": 12345, "runAsGroup": 12345})


@dataclass(frozen=True)
class Crew:
    """Pods that are ready."""

    cluster: Cluster
    namespace: str
    identity: Identity

    @classmethod
    def hire(
        cls, cluster: Cluster, namespace: str, image: str, identity: Identity, **container: Any
    ) -> "Crew":
        """Start the pods; the workers run what the image runs."""
        service = a_service(SERVICE, headless=True, crew="yes")
        launcher = _pod(LAUNCHER, namespace, image, identity, 0, command=["sleep", "1000"])
        workers = [
            _pod(name, namespace, image, identity, node, readinessProbe=_PROBE, **container)
            for node, name in enumerate(WORKERS)
        ]
        create(cluster, namespace, service, _secret(), launcher, *workers)
        await_ready(cluster, namespace, LAUNCHER, *WORKERS, seconds=90)
        return cls(cluster, namespace, identity)

    def run(self, *command: str) -> str:
        """What a command prints in the launcher."""
        return shell(self.cluster, self.namespace, LAUNCHER, shlex.join(command))

    def ssh(self, worker: str, script: str) -> str:
        return self.run("ssh", f"{worker}.{SERVICE}", script)


_PROBE = {"tcpSocket": {"port": 2222}, "periodSeconds": 1}


def _pod(
    name: str, namespace: str, image: str, identity: Identity, node: int, **container: Any
) -> dict[str, Any]:
    keys = {"secretName": "keys", "defaultMode": 0o600 if identity.is_root else 0o644}
    place = f"{identity.home}/.ssh" if identity.has_keys else "/elsewhere"
    mounts = [{"name": "keys", "mountPath": place}, {"name": "tmp", "mountPath": "/tmp"}]
    main = {"name": "main", "image": image, "imagePullPolicy": "Never", "volumeMounts": mounts}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"crew": "yes"}},
        "spec": {
            "nodeName": f"node-{node}",
            "hostname": name,
            "subdomain": SERVICE,
            "terminationGracePeriodSeconds": 0,
            # Hydra's proxies call the launcher by its bare name.
            "dnsConfig": {"searches": [f"{SERVICE}.{namespace}.svc.cluster.local"]},
            "containers": [main | {"securityContext": identity.security} | container],
            "volumes": [{"name": "keys", "secret": keys}, {"name": "tmp", "emptyDir": {}}],
        },
    }


def _secret() -> dict[str, Any]:
    private = ec.generate_private_key(ec.SECP256R1())
    encoding, plain = serialization.Encoding, serialization.NoEncryption()
    secret = private.private_bytes(encoding.PEM, serialization.PrivateFormat.OpenSSH, plain)
    public = private.public_key().public_bytes(encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    files = {"id_rsa": secret, "id_rsa.pub": public, "authorized_keys": public + b"\n"}
    data = {name: base64.b64encode(content).decode() for name, content in files.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "data": data}


def where(output: str) -> dict[int, str]:
    """Which pod each rank says that it ran in."""
    lines = (line.split() for line in output.splitlines() if line.startswith("rank "))
    return {int(words[1]): words[-1] for words in lines}
