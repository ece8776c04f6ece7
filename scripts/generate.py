"""Writes the generated files, or checks that they are up to date.

python scripts/generate.py            write
python scripts/generate.py --check    fail if anything would change
"""

import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry

from mpi_operator.controller.metrics import JobMetrics
from mpi_operator.kube.metrics import Metrics
from mpi_operator.operator import exit_codes, migrate_storage, options
from mpi_operator.webhook.metrics import WebhookMetrics

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # started as a file, Python looks for modules beside it only

from scripts import (  # noqa: E402
    alerts,
    chart_files,
    command_reference,
    deploy_files,
    grafana_dashboard,
    job_reference,
)

HEADER = "<!-- Made by `make generate`. Do not edit. -->\n"


def metrics_reference() -> str:
    """Every metric with its labels and its meaning."""
    JobMetrics(jobs := CollectorRegistry())
    WebhookMetrics(webhook := CollectorRegistry())
    Metrics(kube := CollectorRegistry())
    columns = "| name | kind | labels | meaning |\n|---|---|---|---|\n"
    return (
        f"{HEADER}# Metrics\n\n"
        "[A dashboard and alerts](../how-to/monitor-the-operator.md) use them.\n\n"
        f"## Jobs\n\n{columns}{''.join(_metric_rows(jobs))}\n"
        f"## Webhook\n\n{columns}{''.join(_metric_rows(webhook))}\n"
        f"## Kubernetes client (`mpi_operator.kube`)\n\n{columns}"
        f"{''.join(_metric_rows(kube))}\n"
        "The operator also exports `process_…` and `python_info`, like every Python program.\n"
    )


def _metric_rows(registry: CollectorRegistry) -> Iterator[str]:
    for collector in registry._collector_to_names:
        (family,) = collector.collect()
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = ", ".join(f"`{label}`" for label in getattr(collector, "_labelnames", ()))
        meaning = family.documentation.replace("<", "&lt;").replace(">", "&gt;")
        yield f"| `{name}` | {family.type} | {labels} | {meaning} |\n"


def job_fields() -> str:
    return HEADER + job_reference.text()


def command_line() -> str:
    return HEADER + command_reference.text()


def operator_reference() -> str:
    """Every flag and every exit code of `mpi-operator`."""
    flags = "".join(map(_flag_row, options.FLAGS))
    ignored = "".join(f"| `{each.name}` | {each.why} |\n" for each in options.IGNORED)
    codes = "".join(
        f"| {code.value} | {what} | {_code(do)} |\n"
        for code, (what, do) in exit_codes.MEANINGS.items()
    )
    return (
        f"{HEADER}# `mpi-operator`\n\n"
        "One dash works like two, and `--flag value` like `--flag=value`. `--help` shows the flags,"
        " `--version` the version.\n\n"
        f"## Flags\n\n| flag | default | meaning |\n|---|---|---|\n{flags}\n"
        "## Flags without effect\n\nThe operator accepts these flags, so that a Deployment made for"
        " the Go operator starts, and logs a warning.\n\n"
        f"| flag | why |\n|---|---|\n{ignored}\n"
        f"{_migration_reference()}"
        f"## Exit codes\n\n| code | what happened | what to do |\n|---|---|---|\n{codes}"
        f"| {' | '.join(exit_codes.SECOND_SIGNAL)} |\n"
    )


def _migration_reference() -> str:
    """The command of administrators."""
    flags = "".join(
        f"| `{name}` `{value}` | {migrate_storage.DEFAULTS[name]} | {meaning} |\n"
        for name, value, meaning in migrate_storage.FLAGS
    )
    return (
        f"## `mpi-operator {migrate_storage.COMMAND}`\n\n"
        f"{textwrap.fill(migrate_storage.DESCRIPTION, 120)}\n"
        "[When to use it](../how-to/coming-from-the-training-operator.md#migrate-the-storage).\n\n"
        f"| flag | default | meaning |\n|---|---|---|\n{flags}\n"
    )


def _flag_row(flag: options.Flag) -> str:
    names = ", ".join(f"`{name}`" for name in (flag.name, *flag.aliases))
    return f"| {names} `{flag.value}` | {flag.default} | {flag.meaning} |\n"


def _code(advice: str) -> str:
    return advice.replace(exit_codes.INSTALL_CRD, f"`{exit_codes.INSTALL_CRD}`")


GENERATED: dict[str, Callable[[], str]] = {
    **alerts.FILES,
    **chart_files.FILES,
    **deploy_files.FILES,
    **grafana_dashboard.FILES,
    "docs/reference/command-line.md": command_line,
    "docs/reference/metrics.md": metrics_reference,
    "docs/reference/mpijob.md": job_fields,
    "docs/reference/operator.md": operator_reference,
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
