"""Writes the files that are made from other files, or checks that they are up to date.

python scripts/generate.py            write
python scripts/generate.py --check    fail if anything would change
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry

from mpi_operator.kube.metrics import Metrics

ROOT = Path(__file__).parents[1]
HEADER = "<!-- Made by `make generate`. Do not edit. -->\n"


def metrics_reference() -> str:
    """Every metric with its labels and meaning."""
    Metrics(registry := CollectorRegistry())
    title = "# Metrics of `mpi_operator.kube`\n\n"
    columns = "| name | kind | labels | meaning |\n|---|---|---|---|\n"
    return HEADER + title + columns + "".join(_metric_rows(registry))


def _metric_rows(registry: CollectorRegistry) -> Iterator[str]:
    for collector in registry._collector_to_names:
        (family,) = collector.collect()
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = ", ".join(f"`{label}`" for label in getattr(collector, "_labelnames", ()))
        meaning = family.documentation.replace("<", "&lt;").replace(">", "&gt;")
        yield f"| `{name}` | {family.type} | {labels} | {meaning} |\n"


GENERATED: dict[str, Callable[[], str]] = {
    "docs/reference/metrics.md": metrics_reference,
}


def main() -> int:
    stale = [name for name, make in GENERATED.items() if not _is_current(ROOT / name, make())]
    if "--check" in sys.argv[1:]:
        for name in stale:
            print(f"{name} is out of date: run `make generate`", file=sys.stderr)
        return 1 if stale else 0
    for name in stale:
        (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / name).write_text(GENERATED[name]())
        print(f"wrote {name}")
    return 0


def _is_current(path: Path, wanted: str) -> bool:
    return path.exists() and path.read_text() == wanted


if __name__ == "__main__":
    sys.exit(main())
