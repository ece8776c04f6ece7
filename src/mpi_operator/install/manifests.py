"""Everything that an installation consists of, in the order in which it can be created."""

from mpi_operator.api.crd import custom_resource_definition, v2beta1_only

from . import deployment, rbac, webhooks
from .installation import Installation, Manifest


def everything(chosen: Installation) -> list[Manifest]:
    """All objects, and first those that others need."""
    return [*namespaces(chosen), crd(chosen), *roles(chosen), *program(chosen)]


def namespaces(chosen: Installation) -> list[Manifest]:
    """The operator's own namespace. One in which jobs run is not ours, nor are its rules."""
    return [] if chosen.is_namespaced else [deployment.namespace(chosen)]


def crd(chosen: Installation) -> Manifest:
    """The CRD with the versions that this installation can serve."""
    return custom_resource_definition(chosen.namespace) if chosen.has_webhooks else v2beta1_only()


def roles(chosen: Installation) -> list[Manifest]:
    """The service account and all of its permissions."""
    if chosen.is_namespaced:
        return [
            *rbac.account(chosen),
            *rbac.namespaced(chosen, chosen.namespace),
            *rbac.exec_transport_namespaced(chosen, chosen.namespace),
        ]
    return [*rbac.cluster(chosen), *rbac.exec_transport(chosen), *rbac.webhooks(chosen)]


def program(chosen: Installation) -> list[Manifest]:
    """The operator itself, and how the API server calls it."""
    running = [deployment.deployment(chosen), deployment.disruption_budget(chosen)]
    return [*running, *webhooks.everything(chosen)] if chosen.has_webhooks else running
