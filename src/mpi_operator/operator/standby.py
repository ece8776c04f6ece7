"""Checks the lease while this process stands by.

A candidate retries forever and logs an error once. That is not enough if the lease cannot be
created, because its namespace is missing: the process would look ready and do nothing.
"""

import asyncio
import logging
from typing import NoReturn

from mpi_operator.kube import errors
from mpi_operator.kube.client import Client
from mpi_operator.kube.resources import LEASES, Key

from .health import Health

logger = logging.getLogger(__name__)


async def check_lease(client: Client, lock: Key, health: Health, seconds: float = 10.0) -> NoReturn:
    """Keep `health.lease_problem` up to date until cancelled."""
    try:
        while True:
            await asyncio.sleep(seconds)
            problem = await lease_problem(client, lock)
            if problem and problem != health.lease_problem:
                logger.warning("Cannot acquire the lease", extra={"problem": problem})
            health.lease_problem = problem
    finally:
        health.lease_problem = ""


async def lease_problem(client: Client, lock: Key) -> str:
    """Why no process can acquire the lease; empty if one holds it."""
    try:
        await client.get(LEASES, lock.name, lock.namespace)
    except errors.NotFound:
        return (
            f"Lease {lock} cannot be created: check that namespace {lock.namespace} exists, or "
            "choose another one with --lock-namespace"
        )
    except errors.KubeError as error:
        return f"Lease {lock} cannot be read: {error}"
    return ""
