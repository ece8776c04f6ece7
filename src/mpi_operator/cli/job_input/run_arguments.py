"""The arguments of `mpijob run`: about the job, and about its output."""

import os
from collections.abc import Sequence
from typing import NamedTuple

from .workload import Changes

FILES = (".yaml", ".yml", ".json")  # of jobs


class Shape(NamedTuple):
    """What the command line says about ranks and their workers; None where it says nothing."""

    ranks: int | None = None
    workers: int | None = None
    slots: int | None = None
    gpus: int | None = None
    """For each worker, or for the launcher if it runs the ranks."""


class RunArguments(NamedTuple):
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
        """Whether a person watches the output, and sees a line before it is complete."""
        is_text = self.output in (None, "text") and self.prefix != "rank"
        return is_text and not self.detach and (os.isatty(1) or os.isatty(2))
