"""Who is measured: our operator, the Go operator as it is shipped, and the same unleashed."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

GO_PROGRAM = "kubeflow-mpi-operator"
GO_HEALTH_PORT = 8080  # it listens there and nowhere else
LEASE = "mpi-operator"  # the name of it, for both


@dataclass(frozen=True)
class Contender:
    """An operator, and what it is told beyond where the API server is."""

    name: str
    title: str
    is_go: bool
    flags: tuple[str, ...] = ()

    @property
    def user(self) -> str:
        """Who it is to the API server, so that the audit log tells the contenders apart."""
        return f"operator-{self.name}"

    @property
    def lock_namespace(self) -> str:
        """Where its lease is: nobody waits for the lease of another."""
        return f"lock-{self.name}"

    def command(self, program: Path, kubeconfig: Path, port: int) -> list[str]:
        """Its command line; at `port` it tells whether it leads."""
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
            "--log-format=json",  # as in a pod
            *self.flags,
        ]


OURS = Contender("ours", "ours", is_go=False)
GO = Contender("go", "Go", is_go=True)
TUNED = Contender(
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


def turns(contenders: Sequence[T], number: int) -> Iterator[T]:
    """Everybody once; who begins changes from round to round."""
    return reversed(contenders) if number % 2 else iter(contenders)
