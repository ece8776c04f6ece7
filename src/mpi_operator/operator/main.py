"""The entry point of `mpi-operator`: parses flags, wires the parts together, returns the exit code.

`lifecycle` decides the order in which the parts run.
"""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial

import prometheus_client
from prometheus_client import CollectorRegistry

from mpi_operator import __version__
from mpi_operator.build.settings import Settings
from mpi_operator.controller.controller import Controller
from mpi_operator.controller.metrics import JobMetrics
from mpi_operator.kube import config, errors
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.leader_election.elector import Elector
from mpi_operator.kube.leader_election.lease import Timing
from mpi_operator.kube.metrics import Metrics
from mpi_operator.kube.resources import Key
from mpi_operator.kube.transport import Timeouts

from . import endpoints, log_format, migrate_storage, preflight, standby, training_operator
from .exit_codes import Exit, ExitCode
from .health import Health
from .lifecycle import Parts, Task, run_lifecycle, unless
from .options import Options, Switch, parse, reasons, version

logger = logging.getLogger(__name__)

# The Go operator has the same lease, so that only one of the two works if both are installed.
LEASE = "mpi-operator"
_READS = 16  # concurrent reads, in addition to the writes
# An API server may be slow for seconds, above all under our own load. Exiting then is worse than
# a longer wait for the next leader after a crash.
_TIMING = Timing(lease_seconds=20, renew_seconds=10.0)
# A person waits for the first message about a server that does not answer.
_PREFLIGHT_TIMEOUTS = Timeouts(deadline=5.0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the operator; the exit code says why it ended."""
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == [migrate_storage.COMMAND]:
        return migrate_storage.main(given[1:])
    options = parse(given)
    log_format.set_up(options.log_level, options.log_format)
    where = ", ".join(options.namespaces) or "all"
    logger.info("Starting", extra={"version": version(), "namespaces": where})
    if options.without_effect:
        logger.warning(
            "Ignoring flags that have no effect", extra={"flags": reasons(options.without_effect)}
        )
    return asyncio.run(run(options))


async def run(options: Options) -> ExitCode:
    """Run the operator and log why it ended."""
    with stop_signals() as stop:
        try:
            await operate(options, stop)
        except Exit as error:
            return _logged(error)
        except errors.NotLeader as error:
            return _logged(Exit(ExitCode.LEASE_LOST, "Lost the lease", reason=str(error)))
        except Exception:
            logger.exception("Unexpected error", extra={"exit_code": int(ExitCode.BUG)})
            return ExitCode.BUG
    return ExitCode.STOPPED


async def operate(options: Options, stop: asyncio.Event) -> None:
    """Put the parts together and run their lifecycle."""
    our_config, registry = _config(options), _registry()
    metrics, job_metrics = Metrics(registry), JobMetrics(registry)
    lock = Key(options.lock_namespace, LEASE)
    elector = _elector(options, lock, metrics)
    job_metrics.set_leader(lambda: elector.is_leader)
    calls = options.write_concurrency + _READS
    async with (
        _client(our_config, metrics=metrics, concurrency=calls) as client,
        _client(our_config, metrics=metrics, timeouts=_PREFLIGHT_TIMEOUTS) as checker,
    ):
        controller = _controller(options, client, elector, metrics, job_metrics)
        health = Health(controller, elector)
        parts = Parts(
            controller,
            elector,
            health,
            preflight=partial(_preflight, options, checker, controller, lock, health),
            stand_by=partial(standby.check_lease, checker, lock, health),
            guard=partial(training_operator.exit_on_one, checker, *_rivals(options)),
        )
        ports = [port for port in (options.health_port, options.monitoring_port) if port]
        async with (
            endpoints.served(endpoints.application(health, registry), ports),
            _webhooks(options, registry) as ends,
        ):
            await unless(run_lifecycle(parts, stop), *ends)


def _elector(options: Options, lock: Key, metrics: Metrics) -> Elector:
    return Elector(
        # A config belongs to one event loop, and the lease has a loop of its own.
        partial(_client, _config(options)),
        namespace=lock.namespace,
        name=lock.name,
        timing=_TIMING,
        metrics=metrics,
    )


def _controller(
    options: Options,
    client: HttpClient,
    elector: Elector,
    metrics: Metrics,
    job_metrics: JobMetrics,
) -> Controller:
    return Controller(
        client,
        client.fenced_by(elector),
        Settings(
            cluster_domain=options.cluster_domain,
            gang_scheduler=options.gang_scheduler,
            kubectl_delivery_image=options.kubectl_delivery_image,
        ),
        namespaces=options.namespaces,
        concurrency=options.threadiness,
        write_slots=options.write_concurrency,
        metrics=metrics,
        job_metrics=job_metrics,
    )


async def _preflight(
    options: Options, client: HttpClient, controller: Controller, lock: Key, health: Health
) -> None:
    await preflight.wait_until_allowed(client, controller.resources(), lock, health)
    await training_operator.wait_until_none(client, *_rivals(options), health)
    if options.webhooks is Switch.OFF:
        await preflight.warn_of_missing_webhook(client)


def _rivals(options: Options) -> tuple[str, Sequence[str]]:
    """Where training-operator would be, and the namespaces that it must leave alone."""
    return options.training_operator_namespace, options.namespaces


@asynccontextmanager
async def _webhooks(options: Options, registry: CollectorRegistry) -> AsyncIterator[list[Task]]:
    """Serve the webhooks, if they are on; yields the tasks that end if they cannot continue."""
    if options.webhooks is Switch.OFF:
        yield []
        return
    from . import webhook_thread  # noqa: PLC0415 - loaded only if it is needed

    async with webhook_thread.served(
        options, partial(_client, _config(options)), registry
    ) as ended:
        yield [ended]


def _client(
    found: config.Config,
    *,
    metrics: Metrics | None = None,
    timeouts: Timeouts | None = None,
    concurrency: int = _READS,
) -> HttpClient:
    agent = f"mpi-operator/{__version__}"
    return HttpClient(
        found, metrics=metrics, timeouts=timeouts, concurrency=concurrency, user_agent=agent
    )


def _config(options: Options) -> config.Config:
    try:
        found = config.load(kubeconfig=options.kubeconfig)
    except config.ConfigError as error:
        raise Exit(
            ExitCode.BAD_CONFIGURATION, "No usable configuration", error=str(error)
        ) from error
    return replace(found, server=options.master) if options.master else found


def _registry() -> CollectorRegistry:
    # Nothing uses the creation times, and they would double the number of series.
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
    registry = CollectorRegistry()
    prometheus_client.ProcessCollector(registry=registry)
    prometheus_client.PlatformCollector(registry=registry)
    return registry


@contextmanager
def stop_signals() -> Iterator[asyncio.Event]:
    """An event set by the first SIGTERM or SIGINT; the second one ends the process immediately."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()

    def handle(number: signal.Signals) -> None:
        if stop.is_set():
            logger.warning("Received a second signal, exiting", extra={"signal": number.name})
            os._exit(128 + number)
        logger.info("Received a signal, stopping", extra={"signal": number.name})
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, handle, number)
    try:
        yield stop
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


def _logged(error: Exit) -> ExitCode:
    level = logging.INFO if error.code is ExitCode.STOPPED else logging.ERROR
    logger.log(level, error.message, extra=error.fields | {"exit_code": int(error.code)})
    return error.code
