"""The operators to measure: ours, the Go operator with its defaults, and the same tuned."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

GO_PROGRAM = "kubeflow-mpi-operator"
GO_HEALTH_PORT = 8080  # it cannot be changed
LEASE = "mpi-operator"  # of both


@dataclass(frozen=True)
class Subject:
    """An operator with its flags."""

    name: str
    title: str
    is_go: bool
    flags: tuple[str, ...] = ()

    @property
    def user(self) -> str:
        """Its user on the API server, by which the audit log distinguishes the operators."""
        return f"operator-{self.name}"

    @property
    def lock_namespace(self) -> str:
        """The namespace of its lease, so that none waits for the lease of another."""
        return f"lock-{self.name}"

    def command(self, program: Path, kubeconfig: Path, port: int) -> list[str]:
        """Its command line; it serves metrics on `port`."""
        if self.is_go:
            return [
                str(program),
                f"-kubeConfig={kubeconfig}",
                f"-lock-namespace={self.lock_namespace}",
                f"-monitoring-port={port}",
                "-alsologtostderr",  # as in the Deployment it is shipped with
                *self.flags,
            ]
        return [
            sys.executable,
            "-m",
            "mpi_operator.operator",
            f"--kubeconfig={kubeconfig}",
            f"--lock-namespace={self.lock_namespace}",
            f"--health-port={port}",
            "--webhooks=off",  # the CRD has only v2beta1, as the Go operator's
            "--log-format=json",  # as in a pod
            *self.flags,
        ]


OURS = Subject("ours", "ours", is_go=False)
GO = Subject("go", "Go", is_go=True)
TUNED = Subject(
    "tuned",
    "Go, tuned",
    is_go=True,
    flags=(
        "-kube-api-qps=10000",
        "-kube-api-burst=10000",
        "-controller-queue-rate-limit=10000",
        "-controller-queue-burst=10000",
        "-threadiness=64",
    ),
)
ALL = (OURS, GO, TUNED)


def turns(subjects: Sequence[T], number: int) -> Iterator[T]:
    """Every subject once; the order changes from round to round."""
    return reversed(subjects) if number % 2 else iter(subjects)
