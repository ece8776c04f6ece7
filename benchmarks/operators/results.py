"""Writes the results to files, with all samples."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.operators.comparison import Comparison
from benchmarks.operators.samples import Samples
from benchmarks.operators.table import markdown

DIRECTORY = Path(".benchmarks")


def document(
    facts: Mapping[str, Any],
    samples: Mapping[str, Samples],
    comparisons: Mapping[str, Sequence[Comparison]],
    failures: Mapping[str, str],
) -> dict[str, Any]:
    """The results as plain data."""
    return {
        "machine": dict(facts),
        "figures": {
            name: {
                "comparisons": [
                    {**asdict(each), "is_met": each.is_met} for each in comparisons.get(name, ())
                ],
                "samples": [asdict(each) for each in found],
            }
            for name, found in samples.items()
        },
        "failures": dict(failures),
    }


def files(
    name: str, content: Mapping[str, Any], comparisons: Sequence[Comparison]
) -> dict[str, str]:
    """The content of the files by name."""
    return {
        f"{name}.json": json.dumps(content, indent=2) + "\n",
        f"{name}.md": markdown(comparisons),
    }


def write(kept: Mapping[str, str]) -> list[Path]:
    """Write the files; returns their paths."""
    DIRECTORY.mkdir(exist_ok=True)
    for name, text in kept.items():
        (DIRECTORY / name).write_text(text)
    return [DIRECTORY / name for name in kept]
