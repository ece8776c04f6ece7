"""A figure: something to measure, and comparisons of the samples."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from benchmarks.operators.comparison import Comparison
from benchmarks.operators.samples import Sample, Samples
from benchmarks.operators.scale import Scale
from benchmarks.operators.testbed import Testbed


@dataclass(frozen=True)
class Figure:
    """A named figure. `compare` is pure, and leaves out what was not measured."""

    name: str
    title: str
    measure: Callable[[Testbed, Scale], Awaitable[list[Sample]]]
    compare: Callable[[Samples], Sequence[Comparison | None]]

    def comparisons(self, samples: Samples) -> list[Comparison]:
        """The comparisons of the samples."""
        return [each for each in self.compare(samples) if each is not None]
