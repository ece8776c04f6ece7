"""Checks at startup that the API server serves, and lets us read, everything the operator needs.

What only a person can fix (a missing CRD, a missing permission) ends the process with advice,
because watches would fail forever. What may pass, such as a restarting server, is waited for.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from mpi_operator.api.types import GROUP, PLURAL
from mpi_operator.controller.cached_types import MPI_JOBS
from mpi_operator.kube import config, errors
from mpi_operator.kube.backoff import Backoff
from mpi_operator.kube.client import Client
from mpi_operator.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, LEASES, Key, Resource

from .exit_codes import INSTALL_CRD, Exit, ExitCode
from .health import Health

logger = logging.getLogger(__name__)

_BACKOFF = Backoff(base=1.0, cap=15.0)


@dataclass(frozen=True)
class Failure:
    """A resource that could not be read."""

    resource: Resource
    error: errors.KubeError


async def wait_until_allowed(
    client: Client, watched: Sequence[tuple[Resource, str]], lock: Key, health: Health
) -> None:
    """Return once everything can be read; raise Exit if only a person can help."""
    attempts = 0
    while failures := await failed_reads(client, watched, lock):
        if fatal := fatal_exit(failures):
            raise fatal
        attempts += 1
        _report(failures, health)
        await asyncio.sleep(_BACKOFF.delay(attempts, random.random()))
    health.waiting_for = ""


async def warn_of_missing_webhook(client: Client) -> None:
    """Warn if the CRD has jobs converted by a webhook; for an operator that serves none.

    Only if the operator may read the CRD: it needs no permission for that.
    """
    try:
        crd = await client.get(CUSTOM_RESOURCE_DEFINITIONS, f"{PLURAL}.{GROUP}")
    except errors.KubeError:
        return
    spec = crd.get("spec", {})
    is_converted = (spec.get("conversion") or {}).get("strategy") == "Webhook"
    if is_converted and len(spec.get("versions") or ()) > 1:
        logger.warning(
            "The CRD of MPIJobs has a conversion webhook, which this operator does not serve",
            extra={
                "advice": "apply deploy/v2beta1-only/, or remove --webhooks=off, unless another "
                "operator serves it; until then plain `kubectl get mpijobs` fails"
            },
        )


async def failed_reads(
    client: Client, watched: Sequence[tuple[Resource, str]], lock: Key
) -> list[Failure]:
    """Everything that cannot be read, so that a person can fix it all at once."""
    reads = [_attempt(resource, _list(client, resource, where)) for resource, where in watched]
    reads.append(_attempt(LEASES, _get_lease(client, lock)))
    return [each for each in await asyncio.gather(*reads) if each]


def fatal_exit(failures: Sequence[Failure]) -> Exit | None:
    """The exit for failures that do not pass by themselves; None if they may pass."""
    messages = sorted({str(each.error) for each in failures})
    if _has(failures, config.ConfigError):
        return Exit(ExitCode.BAD_CONFIGURATION, "No usable credentials", errors=messages)
    if _has(failures, errors.Unauthorized):
        return Exit(
            ExitCode.FORBIDDEN,
            "The API server does not accept the operator's credentials",
            errors=messages,
            advice="use a valid kubeconfig or service account",
        )
    if _has(failures, errors.Forbidden):
        return Exit(
            ExitCode.FORBIDDEN,
            "The operator lacks permissions",
            errors=messages,
            advice="apply deploy/rbac/; docs/how-to/run-the-operator.md says which file",
        )
    missing = [each.resource for each in failures if isinstance(each.error, errors.NotFound)]
    return _kind_missing(missing) if missing else None


def _has(failures: Sequence[Failure], kind: type[errors.KubeError]) -> bool:
    return any(isinstance(each.error, kind) for each in failures)


def _kind_missing(kinds: Sequence[Resource]) -> Exit:
    advice = {
        each.kind: INSTALL_CRD
        if each == MPI_JOBS
        else "install the gang scheduler that serves it, or remove --gang-scheduling"
        for each in kinds
    }
    message = "The API server does not serve a required kind"
    return Exit(ExitCode.KIND_MISSING, message, advice=advice)


def _report(failures: Sequence[Failure], health: Health) -> None:
    """Log why the operator waits, once for each reason."""
    error = str(failures[0].error)  # an unreachable server fails every read in the same way
    reason = f"the API server is not available: {error}"
    if reason != health.waiting_for:
        health.waiting_for = reason
        logger.warning("The API server is not available, retrying", extra={"error": error})


async def _attempt(resource: Resource, read: Awaitable[None]) -> Failure | None:
    try:
        await read
    except errors.KubeError as error:
        return Failure(resource, error)
    return None


async def _list(client: Client, resource: Resource, namespace: str) -> None:
    async with aclosing(client.pages(resource, namespace, limit=1)) as pages:
        await anext(pages)


async def _get_lease(client: Client, lock: Key) -> None:
    try:
        await client.get(LEASES, lock.name, lock.namespace)
    except errors.NotFound:
        return  # the first leader creates it
