"""What `mpijob run` does with what it is given: print the job, run it, or leave it running."""

from functools import partial
from typing import NamedTuple

import click

from mpi_operator.cli.command_errors import SUCCESS
from mpi_operator.cli.job_input import run_input
from mpi_operator.cli.job_input.run_arguments import Display, RunArguments
from mpi_operator.cli.job_input.workload import Workload
from mpi_operator.cli.job_output.output import JsonOutput, Output, TextOutput


class Options(NamedTuple):
    """The options that are neither about the job nor about its output."""

    timeout: float | None
    oversubscribe: bool
    sandbox: str | None
    keep: bool


def execute(arguments: RunArguments, display: Display, options: Options) -> int:
    """The exit code."""
    run_input.check(arguments, display)
    if arguments.is_dry_run:
        return _print(run_input.load(arguments), display)
    run_input.check_display(display)
    return _run(run_input.load(arguments), arguments, display, options)


def _print(workload: Workload, display: Display) -> int:
    from . import dry_run  # noqa: PLC0415 — a job that runs does not need it

    click.echo(dry_run.text(workload, display.output or "yaml"), nl=False)
    return SUCCESS


def _run(workload: Workload, arguments: RunArguments, display: Display, options: Options) -> int:
    from mpi_operator.local.sandbox.protocol import Kind  # noqa: PLC0415

    from . import runner  # noqa: PLC0415

    is_several = len(workload.jobs) > 1
    chosen = runner.Options(
        options.timeout,
        options.oversubscribe,
        options.keep,
        Kind(options.sandbox) if options.sandbox else None,
        gives_stdin=arguments.words != ("-",) and not display.detach and not is_several,
        separates_stderr=display.separates_stderr,
        is_watched=display.is_watched and not is_several,
    )
    if display.prefix == "rank":
        from .mpirun_options import with_rank_tags  # noqa: PLC0415

        workload = workload._replace(jobs=[with_rank_tags(each) for each in workload.jobs])
    output = _output(display, is_several=is_several)
    for notice in (*_warnings(workload), *workload.notices):
        output.notice(notice)
    if not display.detach:
        return runner.run(workload, chosen, output)
    from . import detached  # noqa: PLC0415 — few runs need it

    started = detached.start(partial(runner.run, workload, chosen), len(workload.jobs))
    detached.announce(started, display.output)
    return SUCCESS


def _warnings(workload: Workload) -> list[str]:
    return [f"warning: {each}" for job in workload.jobs for each in job.warnings]


def _output(display: Display, *, is_several: bool) -> Output:
    if display.output == "json":
        return JsonOutput()
    return TextOutput(
        is_quiet=display.quiet,
        prefix="pod" if is_several and display.prefix == "auto" else display.prefix,
        has_timestamps=display.timestamps,
        has_several_jobs=is_several,
    )
