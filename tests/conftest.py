"""What all tests share: the last line of a run says what was skipped, and why."""

import asyncio
from collections import Counter

import pytest


def pytest_configure() -> None:
    # Else pytest-asyncio makes a loop on Python 3.11 that nobody closes, and warnings are errors.
    asyncio.set_event_loop(None)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Fast tests first, whatever order chance gave them: a mistake should show in seconds."""
    items.sort(key=lambda item: "tests/api" in item.path.as_posix())


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Skips are easy to overlook in a long run: these lines come last."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if isinstance(reporter, pytest.TerminalReporter):
        reasons = Counter(_reason(report) for report in reporter.stats.get("skipped", []))
        reporter.write_line(f"{reasons.total()} tests were skipped", bold=True)
        for reason, count in reasons.most_common():
            reporter.write_line(f"  {count} x {reason}", yellow=True)


def _reason(report: pytest.TestReport) -> str:
    where = report.longrepr
    return where[2].removeprefix("Skipped: ") if isinstance(where, tuple) else str(where)
