"""Gives a launcher the permission to exec into its workers.

Its account, Role and RoleBinding are not watched, like the keys for ssh: to watch them would be a
permission more, for all namespaces. They are created, and what exists is read and corrected.
"""

from collections.abc import Iterator

import msgspec

from mpi_operator.api import annotations
from mpi_operator.api.types import MPIJob
from mpi_operator.build import exec_shell
from mpi_operator.build.role import role
from mpi_operator.build.role_binding import role_binding, subjects
from mpi_operator.build.service_account import service_account
from mpi_operator.kube import errors
from mpi_operator.kube.client import Client
from mpi_operator.kube.go_json import without_nulls
from mpi_operator.kube.objects import Object
from mpi_operator.kube.resources import (
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    Manifest,
    Resource,
)

from .actions import GrantExec
from .cached_types import is_controlled_by
from .observed import Taken
from .problems import Problem, ProblemReason, refusal

RBAC_FILE = "deploy/rbac/exec-transport.yaml"
_ADVICE = (
    "The operator is not allowed to grant launchers the permission to exec into workers: apply "
    f"{RBAC_FILE}, or set the annotation {annotations.TRANSPORT}: {annotations.SSH} on the job if "
    "its image has an sshd"
)


async def grant_exec(client: Client, action: GrantExec) -> Problem | None:
    """Create what is missing, and correct what differs; a problem if that cannot be done."""
    job = action.job
    for resource, manifest, correction in _objects(action):
        try:
            problem = await _ensure(client, job, resource, manifest, correction)
        except errors.Forbidden as error:
            what = f"{resource.kind} {manifest['metadata']['name']} was not created"
            return _with_advice(refusal(error, what))
        if problem:
            return problem
    return None


def _objects(action: GrantExec) -> Iterator[tuple[Resource, Manifest, Manifest]]:
    """The objects, each with what may differ in a stored one. The account comes last.

    A pod can be created as soon as its account exists, and should have its permission then.
    """
    job = action.job
    permitted = role(job, action.workers, by_kubectl=action.by_kubectl)
    yield ROLES, permitted, {"rules": permitted["rules"]}
    yield ROLE_BINDINGS, role_binding(job), {"subjects": subjects(job)}
    if exec_shell.has_own_account(job):
        yield SERVICE_ACCOUNTS, service_account(job), {}


async def _ensure(
    client: Client, job: MPIJob, resource: Resource, manifest: Manifest, wanted: Manifest
) -> Problem | None:
    try:
        await client.create(resource, manifest)
    except errors.AlreadyExists:
        metadata = manifest["metadata"]
        try:
            stored = await client.get(resource, metadata["name"], metadata["namespace"])
        except errors.NotFound as error:  # it was deleted in between
            raise errors.Conflict(error.status) from error
        if not is_controlled_by(_object(stored), job):
            taken = Taken(resource.kind, metadata["name"])
            return Problem(ProblemReason.NAME_TAKEN, str(taken))
        if any((stored.get(name) or []) != value for name, value in wanted.items()):
            change = {"metadata": {"uid": stored["metadata"]["uid"]}, **wanted}
            await client.patch(resource, metadata["name"], change, metadata["namespace"])
    return None


def _object(stored: Manifest) -> Object:
    return msgspec.convert({"metadata": without_nulls(stored["metadata"])}, Object)


def _with_advice(refused: Problem) -> Problem:
    if refused.reason != ProblemReason.FORBIDDEN:  # a quota or a policy
        return refused
    return Problem(refused.reason, f"{_ADVICE}. {refused.message}")
