"""What is wrong with the lease that this process waits for.

A candidate tries for ever and complains once, in the log. That is too little where the lease can
never be had, because its namespace is missing: the process would look ready and do nothing.
"""

import asyncio
import logging
from typing import NoReturn

from mpi_operator.kube import errors
from mpi_operator.kube.client import Client
from mpi_operator.kube.resources import LEASES, Key

from .health import Health

logger = logging.getLogger(__name__)


async def watch_over(client: Client, lock: Key, health: Health, seconds: float = 10.0) -> NoReturn:
    """While this process stands by, say why it could not take over; for as long as it is run."""
    try:
        while True:
            await asyncio.sleep(seconds)
            trouble = await trouble_with(client, lock)
            if trouble and trouble != health.lock_trouble:
                logger.warning("The lease cannot be had", extra={"trouble": trouble})
            health.lock_trouble = trouble
    finally:
        health.lock_trouble = ""


async def trouble_with(client: Client, lock: Key) -> str:
    """Why nobody can get the lease; empty where somebody has it."""
    try:
        await client.get(LEASES, lock.name, lock.namespace)
    except errors.NotFound:
        return (
            f"the Lease {lock} cannot be made: is there a namespace {lock.namespace}? Create it, "
            "or name another one with --lock-namespace"
        )
    except errors.KubeError as error:
        return f"the Lease {lock} cannot be read: {error}"
    return ""
