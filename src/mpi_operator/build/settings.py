"""The settings that all jobs share. They have their own file because every builder uses them."""

from dataclasses import dataclass

from mpi_operator import __version__

DELIVERY_IMAGE = f"mpioperator/kubectl-delivery:{__version__}"


@dataclass(frozen=True)
class Settings:
    """How the cluster is set up, from the flags of the operator."""

    cluster_domain: str = ""
    """The DNS domain of the cluster. Without it host names end in `svc`, which works everywhere."""

    gang_scheduler: str = ""
    """The gang scheduler: `volcano` or the name of a scheduler with the coscheduling plugin; empty
    for none."""

    kubectl_delivery_image: str = DELIVERY_IMAGE
    """The image that brings the exec client to launchers whose workers have no sshd."""

    is_local: bool = False
    """Whether pods are processes of this machine, where an agent connects them."""
