"""What `mpijob run` is given: a file, or a program and the shape of its job."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .outcome import InvalidInput
from .workload import Changes, Workload

FILES = (".yaml", ".yml", ".json")  # of jobs


class Shape(NamedTuple):
    """What the command line says about ranks and their workers; None where it says nothing."""

    ranks: int | None = None
    workers: int | None = None
    slots: int | None = None
    gpus: int | None = None
    """For each worker, or for the launcher if it runs the ranks."""


class Given(NamedTuple):
    """The arguments of `mpijob run` that are about the job."""

    words: Sequence[str]
    shape: Shape = Shape()
    changes: Changes = Changes()
    mpi: str | None = None
    image: str | None = None
    is_dry_run: bool = False

    @property
    def is_program(self) -> bool:
        return self.shape.ranks is not None or self.shape.workers is not None


class Display(NamedTuple):
    """The arguments of `mpijob run` that are about its output."""

    output: str | None = None
    prefix: str = "auto"
    timestamps: bool = False
    quiet: bool = False
    detach: bool = False

    @property
    def separates_stderr(self) -> bool:
        """Whether it matters which of its two streams a job prints to."""
        return not self.detach and (self.output == "json" or not os.path.sameopenfile(1, 2))

    @property
    def is_watched(self) -> bool:
        """Whether somebody sees what a job prints before it has printed a whole line."""
        is_text = self.output in (None, "text") and self.prefix != "rank"
        return is_text and not self.detach and (os.isatty(1) or os.isatty(2))


def check(given: Given, display: Display) -> None:
    """Refuse options that do not belong together."""
    output = display.output
    if display.detach and given.is_dry_run:
        raise InvalidInput("--detach cannot be used with --dry-run, which runs nothing")
    if output == "yaml" and not given.is_dry_run:
        raise InvalidInput("-o yaml needs --dry-run: a job that runs prints text or JSON")
    if output == "text" and given.is_dry_run:
        raise InvalidInput("--dry-run prints YAML or JSON: use -o yaml or -o json")
    if not given.is_program:
        _check_file(given)
    elif given.changes.config_maps or given.changes.secret_files or given.changes.volumes:
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


def _check_file(given: Given) -> None:
    only_for_programs = {
        "--slots": (given.shape.slots, "; for a file: --set slots=N"),
        "--mpi": (given.mpi, "; for a file: --set implementation=NAME"),
        "--image": (given.image, ""),
    }
    for option, (value, for_file) in only_for_programs.items():
        if value is not None:
            raise InvalidInput(f"{option} needs -np or --workers, and a program{for_file}")
    if len(given.words) > 1:
        program = " ".join(given.words)
        raise InvalidInput(
            f"expected one file, got {program}", f"mpijob run -np 4 {program}  # runs a program"
        )
    if command := _command_of(given.words[0]):
        raise InvalidInput(
            f"{given.words[0]} is a program, and without -np or --workers a file with MPIJobs is "
            "expected",
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


def load(given: Given) -> Workload:
    """The job of the program or of the file."""
    if given.is_program:
        from . import program_job  # noqa: PLC0415 — a file does not need it

        return Workload([program_job.load(given)])
    from . import job_file  # noqa: PLC0415 — a program does not need a parser of YAML

    return job_file.load(Path(given.words[0]), given.changes)
