"""The `mpi-operator` program: flags in, exit code out, and the wiring between.

`life` says what happens in which order; here it is made of real parts.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import metadata

import prometheus_client
from prometheus_client import CollectorRegistry

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

from . import endpoints, log_format, preflight, standby
from .exit_codes import Ending, ExitCode
from .health import Health
from .lifecycle import Parts, live
from .options import Options, parse, reasons, version

logger = logging.getLogger(__name__)

# The Go operator's: where both are installed, only one of them works.
LEASE = "mpi-operator"
_READS = 16  # beside the writes
# A server may be slow for seconds, above all when we keep it busy. To end for that is worse than to
# let the next one wait a little longer after a crash.
_TIMING = Timing(lease_seconds=20, renew_seconds=10.0)
# A person waits for the first word about a server that does not answer.
_IMPATIENT = Timeouts(deadline=5.0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the operator until it has to end; the exit code says why."""
    options = parse(arguments)
    log_format.set_up(options.log_level, options.log_format)
    where = ", ".join(options.namespaces) or "all"
    logger.info("Starting", extra={"version": version(), "namespaces": where})
    if options.without_effect:
        logger.warning("Flags without effect", extra={"flags": reasons(options.without_effect)})
    return asyncio.run(run(options))


async def run(options: Options) -> ExitCode:
    """Operate, and tell why that ended."""
    with stop_signals() as asked:
        try:
            await operate(options, asked)
        except Ending as ending:
            return _told(ending)
        except errors.NotLeader as error:
            return _told(Ending(ExitCode.LEASE_LOST, "The lease is lost", reason=str(error)))
        except Exception:
            logger.exception("A mistake in the operator", extra={"exit_code": int(ExitCode.BUG)})
            return ExitCode.BUG
    return ExitCode.ASKED_TO_STOP


async def operate(options: Options, asked: asyncio.Event) -> None:
    """Put the parts together and let them live."""
    # Two, because one belongs to one event loop, and the lease has a loop of its own.
    ours, the_lease_s = _config(options), _config(options)
    registry = _registry()
    metrics, job_metrics = Metrics(registry), JobMetrics(registry)
    lock = Key(options.lock_namespace, LEASE)
    elector = Elector(
        partial(_client, the_lease_s),
        namespace=lock.namespace,
        name=lock.name,
        timing=_TIMING,
        metrics=metrics,
    )
    job_metrics.set_leader(lambda: elector.is_leader)
    calls = options.write_concurrency + _READS
    async with (
        _client(ours, metrics=metrics, concurrency=calls) as client,
        _client(ours, metrics=metrics, timeouts=_IMPATIENT) as asker,
    ):
        controller = Controller(
            client,
            client.fenced_by(elector),
            Settings(cluster_domain=options.cluster_domain, gang_scheduler=options.gang_scheduler),
            namespaces=options.namespaces,
            concurrency=options.threadiness,
            write_slots=options.write_concurrency,
            metrics=metrics,
            job_metrics=job_metrics,
        )
        health = Health(controller, elector)
        parts = Parts(
            controller,
            elector,
            health,
            preflight=partial(preflight.passed, asker, controller.resources(), lock, health),
            stand_by=partial(standby.watch_over, asker, lock, health),
        )
        ports = [port for port in (options.health_port, options.monitoring_port) if port]
        async with endpoints.served(endpoints.application(health, registry), ports):
            await live(parts, asked)


def _client(
    found: config.Config,
    *,
    metrics: Metrics | None = None,
    timeouts: Timeouts | None = None,
    concurrency: int = _READS,
) -> HttpClient:
    agent = f"mpi-operator/{metadata.version('mpi-operator')}"
    return HttpClient(
        found, metrics=metrics, timeouts=timeouts, concurrency=concurrency, user_agent=agent
    )


def _config(options: Options) -> config.Config:
    try:
        found = config.load(kubeconfig=options.kubeconfig)
    except config.ConfigError as error:
        raise Ending(
            ExitCode.BAD_CONFIGURATION, "No usable configuration", error=str(error)
        ) from error
    return replace(found, server=options.master) if options.master else found


def _registry() -> CollectorRegistry:
    # When a series began is of use to nobody here, and would double them.
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
    registry = CollectorRegistry()
    prometheus_client.ProcessCollector(registry=registry)
    prometheus_client.PlatformCollector(registry=registry)
    return registry


@contextmanager
def stop_signals() -> Iterator[asyncio.Event]:
    """Set on the first SIGTERM or SIGINT; the second one ends the process on the spot."""
    loop = asyncio.get_running_loop()
    asked = asyncio.Event()

    def hear(number: signal.Signals) -> None:
        if asked.is_set():
            logger.warning("Asked again, ending at once", extra={"signal": number.name})
            os._exit(128 + number)
        logger.info("Asked to stop", extra={"signal": number.name})
        asked.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, hear, number)
    try:
        yield asked
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


def _told(ending: Ending) -> ExitCode:
    """The code, once the log has the reason."""
    level = logging.INFO if ending.code is ExitCode.ASKED_TO_STOP else logging.ERROR
    logger.log(level, ending.why, extra=ending.facts | {"exit_code": int(ending.code)})
    return ending.code
