"""Runs jobs on this machine until they end, are deleted, are interrupted or time out."""

import asyncio
import os
import time
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from mpi_operator.api.decode import decode_job
from mpi_operator.api.types import MPIJob
from mpi_operator.cli import signals
from mpi_operator.cli.command_errors import InvalidInput
from mpi_operator.cli.format import counted
from mpi_operator.cli.job_input.config_objects import NAMESPACE
from mpi_operator.cli.job_input.file_objects import CREATED, title
from mpi_operator.cli.job_input.workload import LoadedJob, Workload
from mpi_operator.cli.job_output import outcome
from mpi_operator.cli.job_output.job_stream import (
    JobChanged,
    JobDeleted,
    JobStream,
    Line,
    has_ended,
    watch_job,
)
from mpi_operator.cli.job_output.launcher_failure import LastLines
from mpi_operator.cli.job_output.line_writer import OutputLost
from mpi_operator.cli.job_output.output import Output, Verdict
from mpi_operator.cli.known_jobs.recorder import Recorder, recording
from mpi_operator.embedded import MPI_JOBS, machine
from mpi_operator.kube.client import Client
from mpi_operator.kube.resources import PERSISTENT_VOLUME_CLAIMS, Manifest
from mpi_operator.local import mpi_installation
from mpi_operator.local.kubelet.capacity import this_machine
from mpi_operator.local.kubelet.context import Stdio
from mpi_operator.local.kubelet.node_pods import NodePods
from mpi_operator.local.runs import records, run_directories, state_directory
from mpi_operator.local.sandbox.protocol import Kind, SandboxError

from . import claims, feasibility
from .launcher_stdin import LauncherStdin
from .mpirun_options import with_live_output

# How a job ended, and when, on the monotonic clock.
_Ended: TypeAlias = tuple[records.End, float]
# How all jobs of a run end that still run, once something stops it.
_Stop: TypeAlias = asyncio.Future[records.End]

_PLAIN = (
    "Pods run as plain processes, because namespaces are not available: {why}. Volume paths are "
    "translated, and the kernel gives every pod the host name of this machine"
)


class Options(NamedTuple):
    """The options of `mpijob run` that are not about the job itself."""

    timeout: float | None = None
    oversubscribe: bool = False
    keep: bool = False
    sandbox: Kind | None = None  # None: the best available
    gives_stdin: bool = False  # to the launcher
    separates_stderr: bool = False
    is_watched: bool = False  # by a person, who wants to see beginnings of lines


class _Run(NamedTuple):
    """Jobs, and everything that they need to run."""

    jobs: Sequence[LoadedJob]
    objects: Sequence[Manifest]
    installation: mpi_installation.Installation
    options: Options
    output: Output
    directory: Path
    signals: signals.Deferred


def run(workload: Workload, options: Options, output: Output) -> int:
    """Run jobs until they end; the exit code of the first one that did not succeed, or 0."""
    started = time.monotonic()
    jobs = workload.jobs
    feasibility.check(
        [each.job for each in jobs], this_machine(), oversubscribe=options.oversubscribe
    )
    installation = _installation(jobs)
    if options.is_watched:
        jobs = [with_live_output(each, installation) for each in jobs]
    with signals.Deferred() as arrived:
        owned = _owned_directory(output)
        try:
            jobs = [_named(each, owned) for each in jobs]
            run = _Run(
                jobs, workload.objects, installation, options, output, owned.directory, arrived
            )
            ends = _run_to_end(run)
            owned.end(is_clear=True)  # the node has ended every process
        finally:
            owned.end()
        finished = records.finished_directory(owned.directory.parent) / owned.directory.name
        kept = finished if options.keep else None
        for each, (end, ended) in zip(jobs, ends, strict=True):
            output.close(Verdict(each.job.metadata.name, end, ended - started, kept))
    end = decisive([end for end, _ in ends])
    return signals.exit_code(arrived.number) if arrived.number else end.exit_code


def decisive(ends: Sequence[records.End]) -> records.End:
    """The end of several jobs: that of the first one that did not succeed."""
    return next((end for end in ends if end.exit_code), ends[0])


def _owned_directory(output: Output) -> run_directories.Run:
    try:
        place = state_directory.writable()
    except state_directory.Unwritable as error:
        raise InvalidInput(
            f"no directory for the state of runs can be written: {error}",
            "XDG_STATE_HOME=DIR mpijob run …  # uses another one",
        ) from error
    if place.why_temporary:
        output.notice(
            f"The state of this run is in {place.path}, and may be lost with it: "
            f"{place.why_temporary}"
        )
    return run_directories.create(run_directories.root(place.path))


def _named(loaded: LoadedJob, owned: run_directories.Run) -> LoadedJob:
    """The job under a name that no running job has, if its name is ours to choose."""
    wanted = loaded.job.metadata.name
    name = owned.claim(wanted, is_free=loaded.is_name_free)
    if name == wanted:
        return loaded
    manifest = {**loaded.manifest, "metadata": {**loaded.manifest["metadata"], "name": name}}
    return loaded._replace(manifest=manifest, job=decode_job(manifest))


def _installation(jobs: Sequence[LoadedJob]) -> mpi_installation.Installation:
    wanted = {each.job.spec.mpi_implementation.value: each for each in jobs}
    if len(wanted) > 1:
        raise InvalidInput(
            f"the jobs of a file must use the same MPI here, found {', '.join(wanted)}",
            "mpijob run … --set implementation=NAME  # for all of them",
        )
    return jobs[0].installation or _installed_mpi(jobs[0].job)


def _installed_mpi(job: MPIJob) -> mpi_installation.Installation:
    try:
        return mpi_installation.find(job.spec.mpi_implementation.value)
    except mpi_installation.NotInstalled as missing:
        raise InvalidInput(str(missing), missing.command) from missing


def _run_to_end(run: _Run) -> list[_Ended]:
    if run.options.keep:
        records.mark_kept(run.directory)
    try:
        return asyncio.run(_run(run))
    except BaseExceptionGroup as group:
        if unavailable := group.subgroup(SandboxError):
            helps = "mpijob run --sandbox plain …  # runs without namespaces"
            raise InvalidInput(_first(unavailable), helps) from group
        raise


def _first(group: BaseExceptionGroup[BaseException]) -> str:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else str(first)


async def _run(run: _Run) -> list[_Ended]:
    jobs, output, pods = [each.job for each in run.jobs], run.output, NodePods()
    with _stopped_by(run.signals) as stop, _standard_streams(run) as stdio:
        async with machine(
            run.directory,
            working_directory=run.jobs[0].directory,
            implementation=run.installation,
            oversubscribe=run.options.oversubscribe,
            requests={job.metadata.name: feasibility.total_of(job) for job in jobs},
            kind=run.options.sandbox,
            on_plain=lambda why: output.notice(_PLAIN.format(why=why)),
            pods=pods,
            stdio=stdio,
        ) as cluster:
            _announce(run, jobs)
            async with AsyncExitStack() as stack:
                watches = [
                    watch_job(cluster, job.metadata.name, NAMESPACE, reader=pods.output)
                    for job in jobs
                ]
                streams = [await stack.enter_async_context(each) for each in watches]
                recorder = await stack.enter_async_context(
                    recording(cluster, NAMESPACE, streams, run.directory)
                )
                await _create_objects(cluster, run)
                for each in run.jobs:
                    await cluster.create(MPI_JOBS, each.manifest)
                ends = await asyncio.gather(
                    *(_until_end(each, run, recorder, stop) for each in streams)
                )
        recorder.delete_logs()
    return ends


async def _create_objects(cluster: Client, run: _Run) -> None:
    """Create what the jobs need, before they are created."""
    for each in run.objects:
        if each["kind"] == PERSISTENT_VOLUME_CLAIMS.kind:
            await claims.create(cluster, each, run.directory)
        else:
            await cluster.create(CREATED[each["kind"]], each)


def _announce(run: _Run, jobs: Sequence[MPIJob]) -> None:
    """Say what starts, and where claims are."""
    for claim in claims.used(jobs, run.objects):
        place = claims.directory_of(run.directory) / claim["metadata"]["name"]
        run.output.notice(f"{title(claim)} is the directory {place}, kept between runs")
    for job in jobs:
        workers = job.spec.worker_count
        what = f" {counted(workers, 'worker')}" if workers else ""
        run.output.notice(
            f"{job.metadata.name}: starting{what} on this machine with "
            f"{run.installation.mpirun}, without images"
        )


async def _until_end(stream: JobStream, run: _Run, recorder: Recorder, stop: _Stop) -> _Ended:
    """Follow a job, and record how it ends."""
    end = await _unless(_follow(stream, run.output, recorder, stop), stop, run.options.timeout)
    ended = time.monotonic()
    if end is outcome.DELETED:
        await recorder.forget(stream.job)
    else:
        await recorder.note_end(stream.job, end)
    return end, ended


async def _unless(
    following: Coroutine[Any, Any, records.End], stop: _Stop, timeout: float | None
) -> records.End:
    """The end of a job, unless the run is stopped or times out first."""
    end = asyncio.create_task(following)
    try:
        await asyncio.wait({end, stop}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        if end.done():
            return end.result()
        return stop.result() if stop.done() else outcome.timed_out(timeout)
    finally:
        end.cancel()


async def _follow(
    stream: JobStream, output: Output, recorder: Recorder, stop: _Stop
) -> records.End:
    """Show the job until its end, or until its output cannot be delivered."""
    last_lines = LastLines()
    try:
        ended = await _until_ended(stream, output, recorder, last_lines)
        async for update in stream.rest():
            output.show(update)
            last_lines.note(update)
    except OutputLost as lost:
        end = outcome.output_lost(lost.error)
        _set(stop, end)  # the other jobs have the same output
        return end
    return outcome.end_of(ended, stream.objects, last_lines) if ended else outcome.DELETED


async def _until_ended(
    stream: JobStream, output: Output, recorder: Recorder, last_lines: LastLines
) -> MPIJob | None:
    """Show updates; the finished job, or None if it was deleted."""
    while True:
        update = await stream.next()
        output.show(update)
        last_lines.note(update)
        if isinstance(update, JobDeleted):
            return None
        if isinstance(update, JobChanged) and has_ended(update.job):
            return update.job
        if not isinstance(update, Line):
            recorder.mark_changed()
        if not stream.has_more:
            output.refresh()


@contextmanager
def _standard_streams(run: _Run) -> Iterator[Stdio]:
    """What containers read, and how they print, as the options say."""
    streams = Stdio(separates_stderr=run.options.separates_stderr)
    has_prrte = run.installation.has_prrte
    if not run.options.gives_stdin:
        with Path(os.devnull).open() as null:
            yield streams._replace(rank_0=null.fileno() if has_prrte else None)
        return
    with LauncherStdin() as stdin:
        rank_0 = stdin.descriptor if has_prrte else None
        yield streams._replace(stdin=stdin.of, rank_0=rank_0)


@contextmanager
def _stopped_by(arrived: signals.Deferred) -> Iterator[_Stop]:
    """A future that is set by a signal, also by one that came before the loop ran."""
    loop = asyncio.get_running_loop()
    stop: _Stop = loop.create_future()

    def interrupt() -> None:
        _set(stop, outcome.interrupted(arrived.number))

    arrived.on_arrival = lambda: loop.call_soon_threadsafe(interrupt)
    if arrived.number:
        interrupt()
    try:
        yield stop
    finally:
        arrived.on_arrival = lambda: None


def _set(stop: _Stop, end: records.End) -> None:
    if not stop.done():
        stop.set_result(end)
