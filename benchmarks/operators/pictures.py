"""Which plots there are of the results."""

from collections.abc import Mapping, Sequence

from benchmarks.operators import plots
from benchmarks.operators.comparison import Comparison
from benchmarks.operators.samples import Samples, values
from benchmarks.operators.spread import spread
from benchmarks.operators.table import TITLES


def pictures(
    name: str, samples: Mapping[str, Samples], comparisons: Sequence[Comparison]
) -> dict[str, str]:
    """SVG by the name of its file."""
    drawn = {f"{name}-ratios.svg": ratios(comparisons)}
    if creation := samples.get("creation"):
        drawn[f"{name}-creation.svg"] = seconds_by_workers(creation)
    return drawn


def ratios(comparisons: Sequence[Comparison]) -> str:
    """All ratios in one picture."""
    rows = [
        (
            f"{each.what} ({TITLES.get(each.rival, each.rival)})",
            each.ratio.median,
            each.wanted.number if each.wanted else None,
        )
        for each in comparisons
        if each.ratio
    ]
    return plots.bars("Ours as a part of theirs; red marks are goals", rows)


def seconds_by_workers(samples: Samples) -> str:
    """How long it takes until a job exists, by its size."""
    series = {
        TITLES.get(who, who): [
            (
                float(case.split()[0]),
                spread(values(samples, who, case, "seconds").values()).median,
            )
            for case in dict.fromkeys(each.case for each in samples if each.contender == who)
        ]
        for who in dict.fromkeys(each.contender for each in samples)
    }
    title = "From submission until all pods and the launcher exist"
    return plots.lines(title, series, "workers", "seconds")
