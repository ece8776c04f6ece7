"""What an operator is told once, and every job of it has in common."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """How the cluster is set up."""

    cluster_domain: str = ""
    """The DNS domain of the cluster. Without it host names end in `svc`, which works in any."""

    gang_scheduler: str = ""
    """Who starts all pods of a job or none: nobody, `volcano`, or the name of a scheduler that has
    the coscheduling plugin."""

    uses_ssh: bool = True
    """Whether launchers reach workers by ssh. If not, whoever runs the pods sees to that."""
