"""The whole webhook: the server, its certificate, and what the API server trusts.

Whatever fails around the server is logged and retried; the server continues.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from mpi_operator.kube import errors
from mpi_operator.kube.resources import Key

from .ca_bundle import Applying, BundleKeeper, StaleAuthorities, targets, trusted_by_all
from .certificate_files import CertificateFiles
from .certificate_keeper import CertificateKeeper, Wanted
from .conversion_review import where
from .metrics import WebhookMetrics
from .rotation import Times
from .server import Decisions, application, served
from .tls import LiveContext

logger = logging.getLogger(__name__)

Connect: TypeAlias = Callable[[], AbstractAsyncContextManager[Applying]]
Task: TypeAlias = Callable[[], Coroutine[Any, Any, Any]]

_RESTART_SECONDS = 10.0


@dataclass(frozen=True)
class Settings:
    """Where to serve, and with which certificate."""

    port: int
    secret: Key
    service: Key
    names: Sequence[str]
    """The host names under which API servers reach the webhook."""
    directory: Path | None = None
    """Files to take the certificate from, instead of the Secret."""
    host: str | None = None
    times: Times = field(default_factory=Times)


@asynccontextmanager
async def webhook(
    settings: Settings, connect: Connect, decisions: Decisions, metrics: WebhookMetrics
) -> AsyncIterator[int]:
    """Serve until left; yields the port.

    CannotListen if it is in use, and what `connect` raises.
    """
    live = LiveContext()
    certificates = CertificateKeeper(
        Wanted(settings.secret, settings.names, settings.times), live, metrics
    )
    async with AsyncExitStack() as stack:
        app = application(decisions, metrics)
        port = await stack.enter_async_context(served(app, live, settings.port, settings.host))
        if settings.directory:
            files = CertificateFiles(settings.directory, live, metrics)
            await stack.enter_async_context(_running([files.run]))
        else:
            client = await stack.enter_async_context(connect())
            await stack.enter_async_context(
                _running(_keepers(client, settings.service, certificates))
            )
        yield port


def _keepers(client: Applying, service: Key, certificates: CertificateKeeper) -> list[Task]:
    """The tasks that keep the Secret, and the bundles of every object that has some."""

    def trusted() -> set[str] | None:
        return trusted_by_all(keepers, certificates.authorities)

    async def refresh() -> None:
        try:
            await certificates.refresh(client, trusted())
        except errors.KubeError as error:
            raise StaleAuthorities(str(error)) from error

    keepers = [BundleKeeper(client, each, service, certificates, refresh) for each in targets()]
    certificates.on_change += [each.changed.set for each in keepers]
    return [partial(certificates.run, client, trusted), *(each.run for each in keepers)]


@asynccontextmanager
async def _running(tasks: Sequence[Task]) -> AsyncIterator[None]:
    """Run tasks beside the block, each again if it fails, and end them with it."""
    running = [asyncio.create_task(_kept_running(each)) for each in tasks]
    try:
        yield
    finally:
        for task in running:
            task.cancel()
        await asyncio.wait(running)


async def _kept_running(task: Task) -> None:
    while True:
        try:
            await task()
        except Exception as error:
            facts = {"error": type(error).__name__, "where": where(error)}
            logger.error(
                "A task of the webhook failed because of a bug, restarting it", extra=facts
            )
        await asyncio.sleep(_RESTART_SECONDS)
