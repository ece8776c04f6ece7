"""The results as tables."""

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.operators.comparison import Comparison
from benchmarks.operators.spread import number
from benchmarks.operators.subjects import ALL

_HEAD = ("", "ours", "theirs", "rival", "ratio", "goal", "")
TITLES = {each.name: each.title for each in ALL} | {"raw": "plain POSTs", "baseline": "no operator"}


def table(comparisons: Sequence[Comparison]) -> str:
    """The comparisons as aligned text."""
    rows = [_HEAD, *map(_row, comparisons)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def markdown(comparisons: Sequence[Comparison]) -> str:
    """The comparisons as a Markdown table."""
    head, *rows = (_HEAD, *map(_row, comparisons))
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _row(comparison: Comparison) -> tuple[str, ...]:
    unit = f" {comparison.unit}"
    return (
        comparison.what,
        number(comparison.ours.median) + unit,
        number(comparison.theirs.median) + unit if comparison.theirs else "",
        TITLES.get(comparison.rival, comparison.rival),
        str(comparison.ratio) if comparison.ratio else "",
        str(comparison.wanted) if comparison.wanted else "",
        _verdict(comparison),
    )


def _verdict(comparison: Comparison) -> str:
    if comparison.wanted is None:
        return ""
    return "met" if comparison.is_met else "MISSED"


def facts_lines(facts: Mapping[str, object]) -> Iterator[str]:
    """The facts about the machine, one per line."""
    width = max(map(len, facts))
    return (f"{name:{width}}  {value}" for name, value in facts.items())
