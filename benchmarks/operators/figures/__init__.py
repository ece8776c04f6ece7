"""The figures, one file each: how to measure, and what to compare."""

from benchmarks.operators.figures import creation, jobs, memory, restart
from benchmarks.operators.figures.figure import Figure

ALL: dict[str, Figure] = {
    each.name: each for each in (creation.FIGURE, jobs.FIGURE, memory.FIGURE, restart.FIGURE)
}
