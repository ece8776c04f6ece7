"""Carries out a plan.

What the server refuses is no error here but part of the outcome, because the status reports it.
Any other failure ends the plan, and the queue tries again.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec

from mpi_operator.api import annotations, labels, names
from mpi_operator.api.types import MPIJob
from mpi_operator.build import launcher_job
from mpi_operator.build.settings import Settings
from mpi_operator.build.ssh_secret import KeyPair, ssh_secret
from mpi_operator.kube import errors
from mpi_operator.kube.client import Client, DeleteOptions
from mpi_operator.kube.go_json import without_nulls
from mpi_operator.kube.objects import Object
from mpi_operator.kube.resources import JOBS, PODS, SECRETS, Key, Manifest, Resource

from .actions import (
    Action,
    AdoptLauncher,
    Announce,
    Create,
    CreateKeys,
    Delete,
    GrantExec,
    Patch,
    Resume,
    target,
)
from .cached_types import is_controlled_by
from .caches import Caches
from .events import JobEvent
from .exec_access import grant_exec
from .observed import Taken
from .problems import Problem, ProblemReason, condensed, is_admission, refusal
from .write_limiter import WriteLimiter

log = logging.getLogger(__name__)

# A stage begins with so many writes at a time, and adds some for each that succeeds: what is
# refused once is mostly refused a thousand times.
_FIRST = 8
_MORE = 2
# A new connection costs as much as a few writes, so each task needs some to do.
_WRITES_PER_TASK = 4
_DONE = {
    Create: "created",
    CreateKeys: "created",
    GrantExec: "created",
    AdoptLauncher: "labelled",
    Patch: "changed",
    Announce: "changed",
    Resume: "resumed",
    Delete: "deleted",
}
_CREATING = (Create, CreateKeys, GrantExec)
_REFUSALS = (
    errors.Invalid,
    errors.BadRequest,
    errors.Forbidden,
    errors.TooLarge,
    errors.MethodNotAllowed,
)


@dataclass
class Outcome:
    """What came of a plan."""

    problems: list[Problem] = field(default_factory=list)
    refused: set[tuple[Resource, Key]] = field(default_factory=set)  # what the problems are about
    deleted: set[Delete] = field(default_factory=set)
    has_keys: bool = False  # the Secret, or the permission to exec, was created or found
    events: list[JobEvent] = field(default_factory=list)
    error: Exception | None = None  # what the queue should try again
    is_stale: bool = False  # the cluster was not as observed

    def refuse(self, action: Action, why: Problem) -> None:
        self.problems.append(why)
        self.refused.add(target(action))

    @property
    def is_good(self) -> bool:
        return not self.problems and self.error is None and not self.is_stale


def new_key_pair() -> KeyPair:
    """ECDSA on P-521, in the formats that every OpenSSH reads."""
    # Loaded when it is needed: a job on one machine needs no keys, and should start at once.
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    key = ec.generate_private_key(ec.SECP521R1())
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    return KeyPair(private=private.decode(), public=public.decode() + "\n")


class Executor:
    """Writes to the cluster."""

    def __init__(
        self,
        client: Client,
        caches: Caches,
        settings: Settings,
        limiter: WriteLimiter,
        *,
        make_keys: Callable[[], KeyPair] = new_key_pair,
    ) -> None:
        self._client = client
        self._caches = caches
        self._settings = settings
        self._limiter = limiter
        self._make_keys = make_keys

    async def execute(self, job: MPIJob, stages: Sequence[Sequence[Action]]) -> Outcome:
        """Carry out the stages one after the other, up to the first that does not succeed."""
        outcome = Outcome()
        for stage in stages:
            await _Stage(self, job, stage, outcome).run()
            if not outcome.is_good:
                break
        outcome.problems = condensed(outcome.problems)
        return outcome

    async def do(self, job: MPIJob, action: Action, outcome: Outcome) -> None:
        """Carry out one action; the result goes into the outcome."""
        key = Key(job.metadata.namespace, job.metadata.name)
        try:
            async with self._limiter.slot(key):
                await self._do(job, action, outcome)
        except _REFUSALS as error:
            why = refusal(error, _describe(action), is_template=_has_template(action))
            outcome.refuse(action, why)
        except errors.NotFound as error:
            if isinstance(action, _CREATING):  # no such kind, or no such namespace
                outcome.refuse(action, refusal(error, _describe(action)))
            else:
                outcome.is_stale = True
        except errors.Conflict:
            outcome.is_stale = True
        except errors.ServerError as error:
            if is_admission(error):  # an administrator has to repair the webhook
                outcome.refuse(action, refusal(error, _describe(action)))
            else:
                outcome.error = error
        except errors.KubeError as error:
            outcome.error = error

    async def _do(self, job: MPIJob, action: Action, outcome: Outcome) -> None:
        match action:
            case Create():
                await self._create(job, action, outcome)
            case CreateKeys():
                await self._create_keys(job, action, outcome)
            case GrantExec():
                await self._grant_exec(action, outcome)
            case AdoptLauncher():
                await self._adopt_launcher(job, outcome)
            case Patch():
                await self._patch(action)
                outcome.events.extend(action.events)
            case Announce():
                await self._announce(action)
            case Resume():
                await self._resume(action)
            case Delete():
                await self._delete(action, outcome)

    async def _create(self, job: MPIJob, action: Create, outcome: Outcome) -> None:
        try:
            stored = await self._client.create(action.resource, action.manifest)
        except errors.AlreadyExists:
            await self._handle_existing(job, action, outcome)
        else:
            self._caches.wrote(action.resource, stored)
            outcome.events.extend(action.events)

    async def _handle_existing(self, job: MPIJob, action: Create, outcome: Outcome) -> None:
        """Handle an object that no cache had: it is the job's after all, or another owner's."""
        outcome.is_stale = True
        try:
            stored = await self._client.get(action.resource, action.key.name, action.key.namespace)
        except errors.NotFound:
            return  # it was deleted in between
        if not _is_ours(stored, job):
            outcome.refuse(action, _taken(action))
            return
        if _lacks_labels(stored, action.manifest):
            stored = await self._adopt(action.resource, stored, action.manifest)
        self._caches.wrote(action.resource, stored)

    async def _adopt_launcher(self, job: MPIJob, outcome: Outcome) -> None:
        try:
            stored = await self._client.get(JOBS, names.launcher(job), job.metadata.namespace)
        except errors.NotFound:
            return  # its pods are about to follow it
        if _is_ours(stored, job):
            wanted = {"metadata": {"labels": labels.object_labels(job)}}
            if _lacks_labels(stored, wanted):
                stored = await self._adopt(JOBS, stored, wanted)
            self._caches.wrote(JOBS, stored)
            outcome.is_stale = True

    async def _adopt(self, resource: Resource, stored: Manifest, wanted: Manifest) -> Manifest:
        """Label what the Go operator created: only labelled objects are watched.

        What annotations remember goes with the labels: what has labels counts as ours.
        """
        metadata = stored["metadata"]
        ours = {k: v for k, v in wanted["metadata"].items() if k in ("labels", "annotations")}
        change: Manifest = {"metadata": {"uid": metadata["uid"], **ours}}
        if resource == JOBS:
            # Kubernetes would delete it when it has finished, maybe before the end is stored.
            change["spec"] = {"ttlSecondsAfterFinished": None}
        return await self._client.patch(resource, metadata["name"], change, metadata["namespace"])

    async def _create_keys(self, job: MPIJob, action: CreateKeys, outcome: Outcome) -> None:
        try:
            await self._client.create(SECRETS, ssh_secret(job, self._make_keys()))
        except errors.AlreadyExists:
            if not await self._has_keys(job, action, outcome):
                return
        outcome.has_keys = True

    async def _has_keys(self, job: MPIJob, action: CreateKeys, outcome: Outcome) -> bool:
        """Whether the Secret that exists is the job's."""
        try:
            stored = await self._client.get(SECRETS, names.ssh_secret(job), job.metadata.namespace)
        except errors.NotFound:
            outcome.is_stale = True  # it was deleted in between
            return False
        if not _is_ours(stored, job):
            outcome.refuse(action, _taken(action))
            return False
        return True

    async def _grant_exec(self, action: GrantExec, outcome: Outcome) -> None:
        if problem := await grant_exec(self._client, action):
            outcome.refuse(action, problem)
        else:
            outcome.has_keys = True

    async def _patch(self, action: Patch) -> None:
        change = {
            **action.patch,
            "metadata": {**action.patch.get("metadata", {}), "uid": action.uid},
        }
        stored = await self._client.patch(
            action.resource, action.key.name, change, action.key.namespace
        )
        self._caches.wrote(action.resource, stored)

    async def _announce(self, action: Announce) -> None:
        """Make a node update a launcher's list of hosts.

        It does so anyway within a minute or two, so a refusal does not hold up the job.
        """
        note = {"metadata": {"annotations": {annotations.HOSTS_ANNOUNCED: action.at}}}
        try:
            await self._patch(Patch(PODS, action.key, action.uid, note))
        except (errors.NotFound, errors.Conflict):
            pass  # the launcher is gone
        except _REFUSALS as error:
            self._log_silence(action, error)
        except errors.ServerError as error:
            if not is_admission(error):
                raise
            self._log_silence(action, error)

    def _log_silence(self, action: Announce, error: errors.ApiError) -> None:
        log.warning(
            "Cannot annotate a launcher's pod, so it gets the new list of hosts a minute late",
            extra={"pod": str(action.key), "error": str(error)},
        )

    async def _resume(self, action: Resume) -> None:
        """Start a launcher. A merge patch would keep the node selector of its last queue."""
        stored = await self._client.get(JOBS, action.key.name, action.key.namespace)
        if stored["metadata"]["uid"] != action.uid:
            raise errors.Conflict(errors.Status(message="the launcher was replaced by another one"))
        if (stored.get("status") or {}).get("startTime"):
            # Before Kubernetes 1.36 the pod template is frozen for as long as this is set.
            status = {k: v for k, v in stored["status"].items() if k != "startTime"}
            stored = await self._client.replace(
                JOBS, {**stored, "status": status}, subresource="status"
            )
        resumed = launcher_job.resumed(stored, action.job, self._settings)
        self._caches.wrote(JOBS, await self._client.replace(JOBS, resumed))

    async def _delete(self, action: Delete, outcome: Outcome) -> None:
        # Not found: it is gone. A conflict: another object now has its name.
        with suppress(errors.NotFound, errors.Conflict):
            await self._client.delete(
                action.resource,
                action.key.name,
                action.key.namespace,
                DeleteOptions(uid=action.uid, grace_period_seconds=0 if action.by_force else None),
            )
            outcome.events.extend(action.events)
        outcome.deleted.add(action)


class _Stage:
    """The actions of a stage: more at a time while they succeed."""

    def __init__(
        self, executor: Executor, job: MPIJob, actions: Sequence[Action], outcome: Outcome
    ) -> None:
        self._executor = executor
        self._job = job
        self._remaining: Iterator[Action] = iter(actions)
        self._most_tasks = min(len(actions), max(_FIRST, len(actions) // _WRITES_PER_TASK))
        self._outcome = outcome
        self._tasks = 0

    async def run(self) -> None:
        async with asyncio.TaskGroup() as self._group:
            for _ in range(min(_FIRST, self._most_tasks)):
                self._add_task()

    def _add_task(self) -> None:
        self._tasks += 1
        self._group.create_task(self._work())

    async def _work(self) -> None:
        for action in self._remaining:
            await self._executor.do(self._job, action, self._outcome)
            if self._outcome.problems or self._outcome.error:
                return
            for _ in range(min(_MORE, self._most_tasks - self._tasks)):
                self._add_task()


def _describe(action: Action) -> str:
    """What was refused; the server's message follows."""
    resource, key = target(action)
    return f"{resource.kind} {key.name} was not {_DONE[type(action)]}"


def _taken(action: Action) -> Problem:
    resource, key = target(action)
    return Problem(ProblemReason.NAME_TAKEN, str(Taken(resource.kind, key.name)))


def _has_template(action: Action) -> bool:
    """Whether only the pod templates of the job can make this invalid."""
    return isinstance(action, Create) and action.resource in (PODS, JOBS)


def _is_ours(stored: Manifest, job: MPIJob) -> bool:
    metadata = without_nulls(stored["metadata"])
    return is_controlled_by(msgspec.convert({"metadata": metadata}, Object), job)


def _lacks_labels(stored: Manifest, wanted: Manifest) -> bool:
    given = stored["metadata"].get("labels") or {}
    needed = (labels.OPERATOR_NAME, labels.JOB_NAME, labels.JOB_ROLE)
    return any(
        given.get(name) != wanted["metadata"]["labels"][name]
        for name in needed
        if name in wanted["metadata"]["labels"]
    )
