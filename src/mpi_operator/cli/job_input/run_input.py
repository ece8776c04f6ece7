"""What `mpijob run` is given, a file or a program: checked, and loaded."""

import os
from pathlib import Path

from mpi_operator.cli.command_errors import InvalidInput

from .run_arguments import FILES, Display, RunArguments
from .workload import Workload


def check(arguments: RunArguments, display: Display) -> None:
    """Refuse options that do not belong together."""
    output = display.output
    if display.detach and arguments.is_dry_run:
        raise InvalidInput("--detach cannot be used with --dry-run, which runs nothing")
    if output == "yaml" and not arguments.is_dry_run:
        raise InvalidInput("-o yaml needs --dry-run: a job that runs prints text or JSON")
    if output == "text" and arguments.is_dry_run:
        raise InvalidInput("--dry-run prints YAML or JSON: use -o yaml or -o json")
    if not arguments.is_program:
        _check_file(arguments)
    elif (
        arguments.changes.config_maps or arguments.changes.secret_files or arguments.changes.volumes
    ):
        raise InvalidInput(
            "--configmap, --secret-file and --volume need a file that refers to them"
        )


def check_display(display: Display) -> None:
    """Refuse options about the lines of the job, if something else than lines is printed."""
    output, prefix, timestamps, _, detach = display
    if prefix == "rank" and output == "json":
        raise InvalidInput("--prefix rank cannot be used with -o json: use --prefix pod or none")
    if prefix == "rank" and detach:
        raise InvalidInput("--prefix rank cannot be used with --detach, which prints no output")
    if timestamps and detach:
        raise InvalidInput(
            "--timestamps cannot be used with --detach, which prints no output",
            "mpijob logs NAME --timestamps  # has the times",
        )


def _check_file(arguments: RunArguments) -> None:
    only_for_programs = {
        "--slots": (arguments.shape.slots, "; for a file: --set slots=N"),
        "--mpi": (arguments.mpi, "; for a file: --set implementation=NAME"),
        "--image": (arguments.image, ""),
    }
    for option, (value, for_file) in only_for_programs.items():
        if value is not None:
            raise InvalidInput(f"{option} needs -np or --workers, and a program{for_file}")
    if len(arguments.words) > 1:
        program = " ".join(arguments.words)
        raise InvalidInput(
            f"expected one file, got {program}", f"mpijob run -np 4 {program}  # runs a program"
        )
    if command := _command_of(arguments.words[0]):
        raise InvalidInput(
            f"{arguments.words[0]} is a program, and without -np or --workers a file with MPIJobs "
            "is expected",
            f"mpijob run -np 4 {command}  # runs a program in 4 ranks",
        )


def _command_of(word: str) -> str:
    """The command that runs a program which was given as a file; "" for a file."""
    if word == "-" or word.endswith(FILES):
        return ""
    if os.path.isfile(word):
        is_script = word.endswith(".py") and not os.access(word, os.X_OK)
        return f"python {word}" if is_script else word if os.access(word, os.X_OK) else ""
    from shutil import which  # noqa: PLC0415 — only after a mistake

    return word if "/" not in word and which(word) else ""


def load(arguments: RunArguments) -> Workload:
    """The job of the program or of the file."""
    if arguments.is_program:
        from . import program_job  # noqa: PLC0415 — a file does not need it

        return Workload([program_job.load(arguments)])
    from . import job_file  # noqa: PLC0415 — a program does not need a parser of YAML

    return job_file.load(Path(arguments.words[0]), arguments.changes)
