"""The settings that all jobs share. They have their own file because every builder uses them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """How the cluster is set up, from the flags of the operator."""

    cluster_domain: str = ""
    """The DNS domain of the cluster. Without it host names end in `svc`, which works everywhere."""

    gang_scheduler: str = ""
    """The gang scheduler: `volcano` or the name of a scheduler with the coscheduling plugin; empty
    for none."""

    uses_ssh: bool = True
    """Whether launchers reach workers by ssh. The local kubelet has another way."""
