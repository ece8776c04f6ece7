"""What all tests share: their order, and that the last line of a run says what was skipped and why.

With `-n auto` several processes share them out. What is about the whole run happens in the one that
started those.
"""

import asyncio
import os
import signal
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer

from tests.support import sharing_out

_SKIPPED = 9  # an exit code that pytest does not use

# How long an example takes says how busy the machine is, and nothing about our code.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# For another Python: it shows what the version breaks, not what the logic does.
settings.register_profile("brief", settings.get_profile("patient"), max_examples=10)
settings.load_profile("patient")


def pytest_configure(config: pytest.Config) -> None:
    # Else pytest-asyncio makes a loop on Python 3.11 that nobody closes, and warnings are errors.
    asyncio.set_event_loop(None)
    # A run in the background, or under nohup, was told to ignore these, and so would be what it
    # starts. Tests send them to see what comes of it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if not _is_worker(config):
        config.pluginmanager.register(Herald(config))


class Herald:
    """Names what fails when it fails: the dots of several processes do not say whose they are."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and reporter:
            reporter.write_line(f"\nfailed: {report.nodeid} ({report.when})", red=True)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    return sharing_out.processes()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> sharing_out.Scheduler:
    return sharing_out.Scheduler(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Whatever order chance gave them, some go first."""
    alone = not _is_worker(config)
    items.sort(key=lambda item: sharing_out.rank(item.nodeid, alone=alone))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where nothing may be skipped, a missing tool must not look like success.

    Nor like tests that failed, which get a second look and may pass then (`scripts/test-again`).
    """
    if os.environ.get("MPI_OPERATOR_FORBID_SKIPS") == "yes" and _skipped(session.config):
        session.exitstatus = _SKIPPED


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Skips are easy to overlook in a long run: these lines come last."""
    if _is_worker(config):
        return
    reasons = Counter(map(_reason, _skipped(config)))
    print(f"{reasons.total()} tests were skipped")
    for reason, count in reasons.most_common():
        print(f"  {count} x {reason}")


def _is_worker(config: pytest.Config) -> bool:
    """Whether this process was started by another one, to run some of its tests."""
    return hasattr(config, "workerinput")


def _skipped(config: pytest.Config) -> list[pytest.TestReport]:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return reporter.stats.get("skipped", []) if reporter else []


def _reason(report: pytest.TestReport) -> str:
    where = report.longrepr
    return where[2].removeprefix("Skipped: ") if isinstance(where, tuple) else str(where)
