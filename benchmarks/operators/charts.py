"""The charts of the results."""

from collections.abc import Mapping, Sequence

from benchmarks.operators import plots
from benchmarks.operators.comparison import Comparison
from benchmarks.operators.samples import Samples, values
from benchmarks.operators.spread import spread
from benchmarks.operators.table import TITLES


def charts(
    name: str, samples: Mapping[str, Samples], comparisons: Sequence[Comparison]
) -> dict[str, str]:
    """SVG files by name."""
    drawn = {f"{name}-ratios.svg": ratios(comparisons)}
    if creation := samples.get("creation"):
        drawn[f"{name}-creation.svg"] = seconds_by_workers(creation)
    return drawn


def ratios(comparisons: Sequence[Comparison]) -> str:
    """All ratios in one chart."""
    rows = [
        (
            f"{each.what} ({TITLES.get(each.rival, each.rival)})",
            each.ratio.median,
            each.wanted.number if each.wanted else None,
        )
        for each in comparisons
        if each.ratio
    ]
    return plots.bars("Ours relative to theirs; red marks are goals", rows)


def seconds_by_workers(samples: Samples) -> str:
    """The time until all objects of a job exist, by its size."""
    series = {
        TITLES.get(name, name): [
            (
                float(case.split()[0]),
                spread(values(samples, name, case, "seconds").values()).median,
            )
            for case in dict.fromkeys(each.case for each in samples if each.subject == name)
        ]
        for name in dict.fromkeys(each.subject for each in samples)
    }
    title = "From submission until all pods and the launcher exist"
    return plots.lines(title, series, "workers", "seconds")
