"""Whether the API server lets us do our work: asked once, before anything else.

What only a person can mend (a kind that is missing, a permission) ends the program with a sentence
that says what to do, instead of watches that fail for ever. What may pass, such as a server that
restarts, is waited for.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from mpi_operator.controller.cached_types import MPI_JOBS
from mpi_operator.kube import config, errors
from mpi_operator.kube.backoff import Backoff
from mpi_operator.kube.client import Client
from mpi_operator.kube.resources import LEASES, Key, Resource

from .exit_codes import INSTALL_CRD, Ending, ExitCode
from .health import Health

logger = logging.getLogger(__name__)

_BACKOFF = Backoff(base=1.0, cap=15.0)


@dataclass(frozen=True)
class Refusal:
    """Something that we need to read and could not."""

    resource: Resource
    error: errors.KubeError


async def passed(
    client: Client, watched: Sequence[tuple[Resource, str]], lock: Key, health: Health
) -> None:
    """Return when the server lets us read all of it; Ending where only a person can help."""
    failures = 0
    while found := await refusals(client, watched, lock):
        if ending := verdict(found):
            raise ending
        failures += 1
        _report(found, health)
        await asyncio.sleep(_BACKOFF.delay(failures, random.random()))
    health.waiting_for = ""


async def refusals(
    client: Client, watched: Sequence[tuple[Resource, str]], lock: Key
) -> list[Refusal]:
    """Everything that cannot be read, so that a person need not mend one thing at a time."""
    tries = [_refusal(resource, _peek(client, resource, where)) for resource, where in watched]
    tries.append(_refusal(LEASES, _look(client, lock)))
    return [each for each in await asyncio.gather(*tries) if each]


def verdict(found: Sequence[Refusal]) -> Ending | None:
    """What these refusals mean, if there is no hope that they pass by themselves."""
    words = sorted({str(each.error) for each in found})
    if _any(found, config.ConfigError):
        return Ending(ExitCode.BAD_CONFIGURATION, "No usable credentials", errors=words)
    if _any(found, errors.Unauthorized):
        return Ending(
            ExitCode.NOT_ALLOWED,
            "The API server does not know who we are",
            refusals=words,
            advice="use a kubeconfig or a service account that is valid",
        )
    if _any(found, errors.Forbidden):
        return Ending(
            ExitCode.NOT_ALLOWED,
            "The API server does not let us read what we need",
            refusals=words,
            advice="apply deploy/rbac/; docs/how-to/run-the-operator.md says which file",
        )
    missing = [each.resource for each in found if isinstance(each.error, errors.NotFound)]
    return _missing(missing) if missing else None


def _any(found: Sequence[Refusal], kind: type[errors.KubeError]) -> bool:
    return any(isinstance(each.error, kind) for each in found)


def _missing(kinds: Sequence[Resource]) -> Ending:
    advice = {
        each.kind: INSTALL_CRD
        if each == MPI_JOBS
        else "install what serves it, or leave out --gang-scheduling"
        for each in kinds
    }
    return Ending(
        ExitCode.KIND_MISSING, "The API server does not know a kind that we need", advice=advice
    )


def _report(found: Sequence[Refusal], health: Health) -> None:
    """Say what we wait for, once for as long as it is the same thing."""
    why = str(found[0].error)  # a server that is not there says the same to every question
    sentence = f"the API server cannot be asked: {why}"
    if sentence != health.waiting_for:
        health.waiting_for = sentence
        logger.warning("The API server cannot be asked, will try again", extra={"error": why})


async def _refusal(resource: Resource, reading: Awaitable[None]) -> Refusal | None:
    try:
        await reading
    except errors.KubeError as error:
        return Refusal(resource, error)
    return None


async def _peek(client: Client, resource: Resource, namespace: str) -> None:
    async with aclosing(client.pages(resource, namespace, limit=1)) as pages:
        await anext(pages)


async def _look(client: Client, lock: Key) -> None:
    try:
        await client.get(LEASES, lock.name, lock.namespace)
    except errors.NotFound:
        return  # nobody has led yet
