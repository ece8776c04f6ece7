"""What a figure is: something to measure, and sentences about what was measured."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from benchmarks.operators.comparison import Comparison
from benchmarks.operators.samples import Sample, Samples
from benchmarks.operators.scale import Scale
from benchmarks.operators.stage import Stage


@dataclass(frozen=True)
class Figure:
    """A figure by its name. `compare` is pure, and leaves out what was not measured."""

    name: str
    title: str
    measure: Callable[[Stage, Scale], Awaitable[list[Sample]]]
    compare: Callable[[Samples], Sequence[Comparison | None]]

    def comparisons(self, samples: Samples) -> list[Comparison]:
        """What the samples say."""
        return [each for each in self.compare(samples) if each is not None]
