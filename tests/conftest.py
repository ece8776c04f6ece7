"""What all tests share: the last line of a run says what was skipped, and why."""

import asyncio
import os
import signal
from collections import Counter

import pytest


def pytest_configure() -> None:
    # Else pytest-asyncio makes a loop on Python 3.11 that nobody closes, and warnings are errors.
    asyncio.set_event_loop(None)
    # A run in the background, or under nohup, was told to ignore these, and so would be what it
    # starts. Tests send them to see what comes of it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Fast tests first, whatever order chance gave them: a mistake should show in seconds."""
    items.sort(key=lambda item: "tests/api" in item.path.as_posix())


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where nothing may be skipped, a missing tool must not look like success."""
    if os.environ.get("MPI_OPERATOR_FORBID_SKIPS") == "yes" and _skipped(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Skips are easy to overlook in a long run: these lines come last."""
    reasons = Counter(map(_reason, _skipped(config)))
    print(f"{reasons.total()} tests were skipped")
    for reason, count in reasons.most_common():
        print(f"  {count} x {reason}")


def _skipped(config: pytest.Config) -> list[pytest.TestReport]:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return reporter.stats.get("skipped", []) if reporter else []


def _reason(report: pytest.TestReport) -> str:
    where = report.longrepr
    return where[2].removeprefix("Skipped: ") if isinstance(where, tuple) else str(where)
