"""The webhook as a part of the operator: its settings from the flags, in a thread of its own.

Every replica serves it, from before the first request to the API server until the end: as long as
a job is stored in an old version, our own lists need it.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from prometheus_client import CollectorRegistry

from mpi_operator.api.conversion import UnitSettings, convert
from mpi_operator.kube import config
from mpi_operator.kube.resources import Key
from mpi_operator.webhook import admission
from mpi_operator.webhook.listener import CannotListen
from mpi_operator.webhook.loop_thread import LoopThread
from mpi_operator.webhook.metrics import WebhookMetrics
from mpi_operator.webhook.server import Decisions
from mpi_operator.webhook.webhook import Connect, Settings, webhook

from .exit_codes import Exit, ExitCode
from .lifecycle import Task, background
from .options import Options

SECRET = "mpi-operator-webhook"  # noqa: S105 - its name


@asynccontextmanager
async def served(
    options: Options, connect: Connect, registry: CollectorRegistry
) -> AsyncIterator[Task]:
    """Serve the webhook; yields a task that fails if it cannot continue."""
    metrics = WebhookMetrics(registry)
    thread = LoopThread(
        partial(webhook, settings(options), connect, decisions(options), metrics), "webhook"
    )
    try:
        await thread.start()
    except CannotListen as error:
        port = options.webhook_port
        raise Exit(
            ExitCode.PORT_IN_USE, "Cannot listen on a port", port=port, error=str(error)
        ) from error
    except (config.ConfigError, OSError) as error:  # a file with a token, a CA or a key
        raise Exit(ExitCode.BAD_CONFIGURATION, "No usable credentials", error=str(error)) from error
    async with thread, background(thread.ended()) as ended:
        yield ended


def settings(options: Options) -> Settings:
    """Where to serve, and under which names."""
    service = f"{options.webhook_service}.{options.lock_namespace}.svc"
    return Settings(
        port=options.webhook_port,
        secret=Key(options.lock_namespace, SECRET),
        service=Key(options.lock_namespace, options.webhook_service),
        # The first one is what API servers use, the last one is for port forwarding.
        names=(service, f"{service}.{options.cluster_domain or 'cluster.local'}", "localhost"),
        directory=options.webhook_cert_dir,
    )


def decisions(options: Options) -> Decisions:
    """The pure functions, with the flags that they depend on."""
    units = UnitSettings(
        gpus_per_node=options.gpus_per_node,
        processing_units_per_node=options.processing_units_per_node,
        processing_resource_type=options.processing_resource_type,
    )
    return Decisions(
        convert=lambda manifest, version: convert(manifest, version, units),
        validate=lambda request: admission.validate(request, units),
        mutate=admission.mutate,
    )
