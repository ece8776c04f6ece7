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
class ManualJob:
    """Pods of a name, in a namespace where others may be."""

    cluster: Cluster
    namespace: str
    name: str
    identity: Identity

    @classmethod
    def create(
        cls,
        cluster: Cluster,
        namespace: str,
        image: str,
        identity: Identity,
        name: str = "job",
        **container: Any,
    ) -> "ManualJob":
        """Create the pods; the workers run what the image runs."""
        job = cls(cluster, namespace, name, identity)
        service = a_service(name, headless=True, job=name)
        launcher = job._pod(job.launcher, image, 0, command=["sleep", "1000"])
        workers = [
            job._pod(worker, image, node, readinessProbe=_PROBE, **container)
            for node, worker in enumerate(job.workers)
        ]
        create(cluster, namespace, service, _secret(job.keys), launcher, *workers)
        return job

    @property
    def launcher(self) -> str:
        return f"{self.name}-launcher"

    @property
    def workers(self) -> list[str]:
        return [f"{self.name}-worker-{number}" for number in range(2)]

    @property
    def hosts(self) -> list[str]:
        return [f"{worker}.{self.name}" for worker in self.workers]

    @property
    def keys(self) -> str:
        return f"{self.name}-keys"

    def wait(self) -> "ManualJob":
        """Wait until all pods are ready."""
        await_ready(self.cluster, self.namespace, self.launcher, *self.workers, seconds=90)
        return self

    def run(self, *command: str) -> str:
        """What a command prints in the launcher."""
        return shell(self.cluster, self.namespace, self.launcher, shlex.join(command))

    def ssh(self, host: str, script: str) -> str:
        return self.run("ssh", host, script)

    def _pod(self, name: str, image: str, node: int, **container: Any) -> dict[str, Any]:
        identity = self.identity
        keys = {"secretName": self.keys, "defaultMode": 0o600 if identity.is_root else 0o644}
        place = f"{identity.home}/.ssh" if identity.has_keys else "/elsewhere"
        mounts = [{"name": "keys", "mountPath": place}, {"name": "tmp", "mountPath": "/tmp"}]
        main = {"name": "main", "image": image, "imagePullPolicy": "Never", "volumeMounts": mounts}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {"job": self.name}},
            "spec": {
                "nodeName": f"node-{node}",
                "hostname": name,
                "subdomain": self.name,
                "terminationGracePeriodSeconds": 0,
                # Hydra's proxies call the launcher by its bare name.
                "dnsConfig": {"searches": [f"{self.name}.{self.namespace}.svc.cluster.local"]},
                "containers": [main | {"securityContext": identity.security} | container],
                "volumes": [{"name": "keys", "secret": keys}, {"name": "tmp", "emptyDir": {}}],
            },
        }


_PROBE = {"tcpSocket": {"port": 2222}, "periodSeconds": 1}


def _secret(name: str) -> dict[str, Any]:
    private = ec.generate_private_key(ec.SECP256R1())
    encoding, plain = serialization.Encoding, serialization.NoEncryption()
    secret = private.private_bytes(encoding.PEM, serialization.PrivateFormat.OpenSSH, plain)
    public = private.public_key().public_bytes(encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    files = {"id_rsa": secret, "id_rsa.pub": public, "authorized_keys": public + b"\n"}
    data = {name: base64.b64encode(content).decode() for name, content in files.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}


def where(output: str) -> dict[int, str]:
    """Which pod each rank says that it ran in."""
    lines = (line.split() for line in output.splitlines() if line.startswith("rank "))
    return {int(words[1]): words[-1] for words in lines}
