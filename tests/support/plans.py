"""What a plan says, in short."""

from mpi_operator.api import names
from mpi_operator.controller.actions import Create, CreateKeys, Delete, Patch, Resume
from mpi_operator.controller.plan import Plan
from mpi_operator.kube.resources import Manifest, Resource


def names_created(plan: Plan) -> list[str]:
    """What a plan creates, in order."""
    found = []
    for action in plan.actions:
        match action:
            case Create():
                found.append(f"{action.resource.kind} {action.key.name}")
            case CreateKeys():
                found.append(f"Secret {names.ssh_secret(action.job)}")
    return found


def names_deleted(plan: Plan) -> list[str]:
    """What a plan deletes."""
    return [
        f"{action.resource.kind} {action.key.name}"
        for action in plan.actions
        if isinstance(action, Delete)
    ]


def changes(plan: Plan, resource: Resource) -> list[Manifest]:
    """What a plan changes of a kind."""
    return [
        action.patch
        for action in plan.actions
        if isinstance(action, Patch) and action.resource == resource
    ]


def resumes(plan: Plan) -> bool:
    return any(isinstance(action, Resume) for action in plan.actions)
