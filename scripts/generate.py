"""Writes the files that are made from other files, or checks that they are up to date.

python scripts/generate.py            write
python scripts/generate.py --check    fail if anything would change
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import yaml
from prometheus_client import CollectorRegistry

from mpi_operator.api import schema
from mpi_operator.api.definition import custom_resource_definition
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


def definition() -> str:
    """The custom resource definition, to be installed with `kubectl apply -f`."""
    header = "# Made by `make generate`. Do not edit.\n"
    return header + yaml.dump(custom_resource_definition(), Dumper=_NoAliases, sort_keys=False)


class _NoAliases(yaml.SafeDumper):
    """Equal parts are written out: aliases are legal YAML, and still surprise people."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def job_reference() -> str:
    """Every field of a job."""
    title = "# The fields of an MPIJob (`kubeflow.org/v2beta1`)\n\n"
    columns = "| field | type | default | meaning |\n|---|---|---|---|\n"
    rows = (_job_row(path, field) for path, field in _fields(schema.served_job()))
    return HEADER + title + columns + "".join(rows)


def _fields(parent: schema.Schema, path: str = "") -> Iterator[tuple[str, schema.Schema]]:
    """Every documented field below a schema, with its path; a pod template is one field."""
    for name, field in parent.get("properties", {}).items():
        inner = f"{path}.{name}" if path else name
        if "description" in field:
            yield inner, field
            yield from _fields(field, inner)
    if below := parent.get("additionalProperties") or parent.get("items"):
        yield from _fields(below, f"{path}[]")


def _job_row(path: str, field: schema.Schema) -> str:
    kind = " or ".join(f"`{value}`" for value in field.get("enum", ())) or field["type"]
    if "minimum" in field:
        kind += f", at least {field['minimum']}"
    default = f"`{yaml.safe_dump(field['default']).split()[0]}`" if "default" in field else ""
    return f"| `{path}` | {kind} | {default} | {field['description']} |\n"


GENERATED: dict[str, Callable[[], str]] = {
    "deploy/crds/mpijobs.kubeflow.org.yaml": definition,
    "docs/reference/metrics.md": metrics_reference,
    "docs/reference/mpijob.md": job_reference,
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
