"""One file for each figure: how it is measured, and what is said about it."""

from benchmarks.operators.figures import creation, jobs, memory, restart
from benchmarks.operators.figures.figure import Figure

ALL: dict[str, Figure] = {
    each.name: each for each in (creation.FIGURE, jobs.FIGURE, memory.FIGURE, restart.FIGURE)
}
