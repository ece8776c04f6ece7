"""Measure the operators, print a table, and store numbers and plots in .benchmarks/.

Exits with 1 if a goal is missed or a figure could not be measured.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence

from benchmarks.operators import baseline, figures, kwok, machine, raw
from benchmarks.operators.figures.figure import Figure
from benchmarks.operators.report import Results, report
from benchmarks.operators.samples import comparable
from benchmarks.operators.scale import FULL, QUICK, Scale, with_rounds
from benchmarks.operators.testbed import Testbed, new_testbed
from benchmarks.progress import say
from devcluster import binaries
from devcluster.control_plane import ControlPlane

_SLACK = 3  # a figure that exceeds its time limit this many times hangs


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the chosen figures; the exit code says whether all goals are met."""
    options = _parser().parse_args(arguments)
    scale = with_rounds(QUICK if options.quick else FULL, options.rounds)
    binaries.provide([*binaries.USES["control-plane"], *binaries.USES["benchmarks"]])
    facts = {"scale": scale.name, **machine.facts()}
    if machine.is_busy(facts):
        say("The machine is busy. Ratios may still be meaningful.")
    chosen = [figures.ALL[name] for name in options.figures or figures.ALL]
    found = asyncio.run(_measure(chosen, scale))
    return report("operators", found, facts)


async def _measure(chosen: Sequence[Figure], scale: Scale) -> Results:
    """Measure every figure on one control plane, even if one of them fails."""
    found = Results()
    control_plane = ControlPlane(controller_manager=True, scheduler=True, audit=True)
    async with new_testbed(control_plane, users=[kwok.USER, raw.USER, baseline.USER]) as testbed:
        for figure in chosen:
            try:
                await _measure_one(testbed, figure, scale, found)
            except Exception as error:
                say(f"{figure.name}: failed: {error!r}")
                found.failures[figure.name] = repr(error)
    return found


async def _measure_one(testbed: Testbed, figure: Figure, scale: Scale, found: Results) -> None:
    say(f"{figure.name}: {figure.title}")
    async with asyncio.timeout(scale.minutes * 60 * _SLACK):
        samples = await figure.measure(testbed, scale)
    found.samples[figure.name] = samples
    found.comparisons[figure.name] = figure.comparisons(comparable(samples))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.operators", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--quick", action="store_true", help="Measure little of everything, in minutes"
    )
    parser.add_argument(
        "--figures", nargs="+", choices=figures.ALL, metavar="FIGURE", help=", ".join(figures.ALL)
    )
    parser.add_argument("--rounds", type=int, help=f"Number of rounds (default: {FULL.rounds})")
    return parser


if __name__ == "__main__":
    sys.exit(main())
