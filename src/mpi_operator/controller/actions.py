"""What a plan can consist of, as data: `execute` carries it out, tests read it."""

from dataclasses import dataclass, field
from typing import TypeAlias

from mpi_operator.api import names
from mpi_operator.api.types import MPIJob
from mpi_operator.kube.objects import Object
from mpi_operator.kube.resources import JOBS, PODS, ROLES, SECRETS, Key, Manifest, Resource

from .events import JobEvent


@dataclass(frozen=True)
class Create:
    """Store a new object."""

    resource: Resource
    manifest: Manifest
    events: tuple[JobEvent, ...] = ()  # recorded when it is done

    @property
    def key(self) -> Key:
        metadata = self.manifest["metadata"]
        return Key(metadata["namespace"], metadata["name"])


@dataclass(frozen=True)
class CreateKeys:
    """Create a key pair, unless the job has one. Keys are random, so they are not in the plan."""

    job: MPIJob


@dataclass(frozen=True)
class GrantExec:
    """Let the launcher exec into the workers that the job has now.

    The account, the Role and the RoleBinding are not watched, so they are not in the plan.
    """

    job: MPIJob
    workers: frozenset[int]
    by_kubectl: bool = False  # which also reads the pod


@dataclass(frozen=True)
class AdoptLauncher:
    """Label a launcher that the Go operator created for the job: else no cache has it."""

    job: MPIJob


@dataclass(frozen=True)
class Patch:
    """Merge something into an object, if it still has this uid."""

    resource: Resource
    key: Key
    uid: str
    patch: Manifest
    events: tuple[JobEvent, ...] = ()


@dataclass(frozen=True)
class Announce:
    """Change an annotation of a launcher's pod, so that its node updates the list of hosts now."""

    key: Key
    uid: str
    at: str


@dataclass(frozen=True)
class Resume:
    """Start a suspended launcher, with the current scheduling directives."""

    key: Key
    uid: str
    job: MPIJob


@dataclass(frozen=True)
class Delete:
    """Delete an object, if it still has this uid."""

    resource: Resource
    key: Key
    uid: str
    by_force: bool = False
    events: tuple[JobEvent, ...] = field(default=(), compare=False)


Action: TypeAlias = (
    Create | CreateKeys | GrantExec | AdoptLauncher | Patch | Announce | Resume | Delete
)


def patch(
    resource: Resource, known: Object, change: Manifest, events: tuple[JobEvent, ...] = ()
) -> Patch:
    return Patch(resource, known.metadata.key, known.metadata.uid, change, events)


def delete(
    resource: Resource, known: Object, *, by_force: bool = False, events: tuple[JobEvent, ...] = ()
) -> Delete:
    return Delete(resource, known.metadata.key, known.metadata.uid, by_force, events)


def target(action: Action) -> tuple[Resource, Key]:
    """The object that an action is about."""
    match action:
        case CreateKeys():
            return SECRETS, Key(action.job.metadata.namespace, names.ssh_secret(action.job))
        case GrantExec():
            return ROLES, Key(action.job.metadata.namespace, names.launcher_access(action.job))
        case AdoptLauncher():
            return JOBS, Key(action.job.metadata.namespace, names.launcher(action.job))
        case Announce():
            return PODS, action.key
        case Resume():
            return JOBS, action.key
        case Create() | Patch() | Delete():
            return action.resource, action.key
