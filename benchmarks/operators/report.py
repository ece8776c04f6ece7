"""Prints, stores and draws the results, and checks the goals."""

from collections.abc import Mapping

from benchmarks.operators import charts, results
from benchmarks.operators.comparison import Comparison
from benchmarks.operators.samples import Sample
from benchmarks.operators.table import facts_lines, table
from benchmarks.progress import say


class Results:
    """The measurements so far, by figure."""

    def __init__(self) -> None:
        self.samples: dict[str, list[Sample]] = {}
        self.comparisons: dict[str, list[Comparison]] = {}
        self.failures: dict[str, str] = {}

    @property
    def lines(self) -> list[Comparison]:
        return [each for found in self.comparisons.values() for each in found]

    @property
    def is_good(self) -> bool:
        """Whether everything was measured, and every goal is met."""
        return not self.failures and all(each.is_met for each in self.lines)


def report(name: str, found: Results, facts: Mapping[str, object]) -> int:
    """Print and store the results; returns the exit code."""
    print("\n".join(facts_lines(facts)), end="\n\n")
    print(table(found.lines))
    for figure, error in found.failures.items():
        print(f"FAILED  {figure}: {error}")
    content = results.document(facts, found.samples, found.comparisons, found.failures)
    kept = results.files(name, content, found.lines)
    drawn = charts.charts(name, found.samples, found.lines)
    for path in results.write(kept | drawn):
        say(f"Wrote {path}")
    return 0 if found.is_good else 1
