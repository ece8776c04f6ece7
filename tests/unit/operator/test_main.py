"""Exit codes, signals and configuration of the process."""

import asyncio
import logging
import os
import signal

import pytest

from mpi_operator.kube import config, errors
from mpi_operator.operator import log_format, main
from mpi_operator.operator.exit_codes import MEANINGS, Exit, ExitCode
from mpi_operator.operator.options import Options, parse
from tests.support.waiting import until

KUBECONFIG = """
{clusters: [{name: c, cluster: {server: "https://there:1"}}], users: [{name: u, user: {}}],
 contexts: [{name: x, context: {cluster: c, user: u}}], current-context: x}
"""


def test_every_exit_code_has_a_meaning():
    assert list(MEANINGS) == list(ExitCode)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        pytest.param(Exit(ExitCode.FORBIDDEN, "no"), ExitCode.FORBIDDEN, id="an exit"),
        pytest.param(errors.NotLeader("late"), ExitCode.LEASE_LOST, id="a fence that closed"),
        pytest.param(KeyError("oops"), ExitCode.BUG, id="a bug"),
    ],
)
async def test_the_exit_code_and_the_last_line_say_why_it_ended(error, code, monkeypatch, caplog):
    async def operate(options, stop):
        raise error

    monkeypatch.setattr(main, "operate", operate)
    assert await main.run(Options()) is code
    last = caplog.records[-1]
    assert (last.exit_code, last.levelno) == (code, logging.ERROR)


async def test_a_signal_stops_it_with_code_0(monkeypatch, caplog):
    async def operate(options, stop):
        os.kill(os.getpid(), signal.SIGTERM)
        await stop.wait()
        raise Exit(ExitCode.STOPPED, "Stopped")

    monkeypatch.setattr(main, "operate", operate)
    with caplog.at_level(logging.INFO):
        assert await main.run(Options()) == 0
    assert [record.levelname for record in caplog.records] == ["INFO", "INFO"]


async def test_a_second_signal_ends_the_process_at_once(monkeypatch):
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    with main.stop_signals() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.wait_for(stop.wait(), 10)
        assert codes == []
        os.kill(os.getpid(), signal.SIGTERM)
        await until(lambda: codes == [128 + signal.SIGTERM])


async def test_a_missing_kubeconfig_is_reported_first(tmp_path, caplog):
    options = Options(kubeconfig=tmp_path / "nothing", health_port=0)
    assert await main.run(options) is ExitCode.BAD_CONFIGURATION
    assert str(tmp_path / "nothing") in caplog.records[-1].error


def test_a_flag_beats_the_variable_and_the_address_in_the_file(tmp_path, monkeypatch):
    path = tmp_path / "config"
    path.write_text(KUBECONFIG)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "another"))
    found = main._config(Options(kubeconfig=path))
    assert found.server == "https://there:1"
    found = main._config(Options(kubeconfig=path, master="https://elsewhere:2"))
    assert isinstance(found, config.Config)
    assert found.server == "https://elsewhere:2"


def test_flags_without_effect_are_logged_in_one_line(monkeypatch, caplog):
    async def run(options):
        return ExitCode.STOPPED

    monkeypatch.setattr(main, "run", run)
    monkeypatch.setattr(log_format, "set_up", lambda *_: None)
    assert main.main(["-v=2", "-kube-api-qps=5"]) == 0
    (line,) = (record for record in caplog.records if record.levelno == logging.WARNING)
    assert sorted(line.flags) == ["--kube-api-qps", "--v"]


def test_the_metrics_include_those_of_the_process():
    registry = main._registry()
    assert registry.get_sample_value("process_start_time_seconds")


def test_flags_reach_the_operator(monkeypatch):
    seen: list[Options] = []

    async def run(options):
        seen.append(options)
        return ExitCode.LEASE_LOST

    monkeypatch.setattr(main, "run", run)
    monkeypatch.setattr(log_format, "set_up", lambda *_: None)
    assert main.main(["--threadiness", "3"]) == ExitCode.LEASE_LOST
    assert seen == [parse(["--threadiness", "3"])]
