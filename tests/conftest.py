"""What all tests share: their order, a search for leaked connections, and a summary of skips.

With `-n auto` several worker processes run the tests. Hooks about the whole run act in the process
that started the workers.
"""

import asyncio
import gc
import inspect
import os
import signal
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer

from tests.support import sharing_out

# A script ignores SIGINT for what it starts with `&`, and programs inherit that; tests need it.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_SKIPPED = 9  # an exit code that pytest does not use

# The time that an example takes depends on how busy the machine is. Which examples are tried
# depends on the test alone, so that a failed run can be repeated.
settings.register_profile(
    "patient", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
# For another Python: it shows what the version breaks, not what the logic does.
settings.register_profile("brief", settings.get_profile("patient"), max_examples=10)
# For `make soak`: other examples in every run, and many.
settings.register_profile(
    "soak", settings.get_profile("patient"), derandomize=False, max_examples=10_000
)
settings.load_profile("patient")


def pytest_configure(config: pytest.Config) -> None:
    # Otherwise pytest-asyncio leaves a loop open on Python 3.11, and warnings are errors.
    asyncio.set_event_loop(None)
    # A run in the background or under nohup ignores these signals, and its children inherit that.
    # Tests send them to their children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if not _is_worker(config):
        config.pluginmanager.register(FailureReporter(config))


class FailureReporter:
    """Prints the name of each test that fails, at once: with several workers, dots do not tell."""

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
def pytest_xdist_make_scheduler(
    config: pytest.Config, log: Producer
) -> sharing_out.Scheduler | None:
    """Our own scheduler, unless another one than the default was asked for."""
    return sharing_out.Scheduler(config, log) if config.getoption("dist") == "load" else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order tests by where they are; pytest-randomly keeps its say among those of one place."""
    alone = not _is_worker(config)
    items.sort(key=lambda item: sharing_out.rank(item.nodeid, alone=alone))


def pytest_collection_finish() -> None:
    """Exempt the modules and tests that are loaded by now from every later garbage collection."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _no_connection_left_open(request: pytest.FixtureRequest) -> Iterator[None]:
    """Collect garbage after each asynchronous test, when its event loop has ended.

    A connection that it left open is a ResourceWarning, which is an error. Without this, the error
    would appear in whatever test runs when Python next collects garbage. Takes 2 ms.
    """
    yield
    if inspect.iscoroutinefunction(request.function):
        gc.collect()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End with a status of its own if tests were skipped and `MPI_OPERATOR_FORBID_SKIPS` is set.

    A missing tool must not look like success, nor like failed tests, which `scripts/test-again`
    would run again.
    """
    if os.environ.get("MPI_OPERATOR_FORBID_SKIPS") == "yes" and _skipped(session.config):
        session.exitstatus = _SKIPPED


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Print the skips as the last lines, where they are not overlooked."""
    if _is_worker(config):
        return
    reasons = Counter(map(_reason, _skipped(config)))
    print(f"{reasons.total()} tests were skipped")
    for reason, count in reasons.most_common():
        print(f"  {count} x {reason}")


def _is_worker(config: pytest.Config) -> bool:
    """Whether another pytest process started this one, to run some of its tests."""
    return hasattr(config, "workerinput")


def _skipped(config: pytest.Config) -> list[pytest.TestReport]:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return reporter.stats.get("skipped", []) if reporter else []


def _reason(report: pytest.TestReport) -> str:
    where = report.longrepr
    return where[2].removeprefix("Skipped: ") if isinstance(where, tuple) else str(where)
