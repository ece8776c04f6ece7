"""Owners that die are real processes here; what they own are sleeping dummies."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from devcluster import process, runs
from devcluster.process import Process
from devcluster.runs import Run
from tests.support.waiting import block_until

Begin = Callable[..., Run]
StartOwner = Callable[[], tuple[subprocess.Popen[str], Path]]
Abandon = Callable[[int], list[Path]]

OWNER = """
import os, signal, sys
from devcluster import runs
run = runs.create()
run.start("dummy", ["sleep", "1000"])
print(run.directory, flush=True)
sys.stdin.read()
"""


def dummy_of(directory: Path) -> Process:
    return next(each for each in runs.recorded(directory) if each.name == "dummy")


def kill_guard(directory: Path) -> None:
    next(each for each in runs.recorded(directory) if each.name == "watchdog").kill()


@pytest.fixture
def begin() -> Iterator[Begin]:
    """Starts runs in this process, and ends them."""
    begun: list[Run] = []

    def begin_run(name: str | None = None) -> Run:
        begun.append(runs.create(name))
        begun[-1].start("dummy", ["sleep", "1000"])
        return begun[-1]

    yield begin_run
    for run in begun:
        run.end()


@pytest.fixture
def owner() -> Iterator[StartOwner]:
    """Starts a process that owns a run, and returns it with the run's directory."""
    owners: list[subprocess.Popen[str]] = []

    def start() -> tuple[subprocess.Popen[str], Path]:
        owners.append(
            subprocess.Popen(
                [sys.executable, "-c", OWNER],
                cwd=Path(runs.__file__).parents[1],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        assert owners[-1].stdout
        return owners[-1], Path(owners[-1].stdout.readline().strip())

    yield start
    for each in owners:
        with suppress(ProcessLookupError):
            each.kill()
        each.communicate()
    runs.reap()


@pytest.fixture
def abandon(owner: StartOwner) -> Abandon:
    """Makes runs whose owners and watchdogs were killed, and returns their directories."""

    def make(count: int) -> list[Path]:
        owners = [owner() for _ in range(count)]
        for killed, directory in owners:
            kill_guard(directory)
            killed.kill()
            killed.wait()
        return [directory for _, directory in owners]

    return make


def adopted(name: str) -> Run:
    run = runs.adopt(name)
    assert run is not None
    return run


def test_an_ended_run_leaves_nothing(begin):
    run = begin()
    processes = run.processes()
    run.end()
    assert {each.name for each in processes} == {"dummy", "watchdog"}
    assert not any(each.is_alive for each in processes)
    assert not run.directory.exists()


def test_a_run_may_end_twice(begin):
    run = begin()
    run.end()
    run.end()  # raises if something of it has to be there
    assert not run.directory.exists()


def test_keys_and_data_are_for_the_owner_only(begin):
    assert begin().directory.stat().st_mode & 0o777 == 0o700


def test_the_run_of_a_living_owner_is_left_alone(begin):
    run = begin()
    assert runs.reap() == []
    assert dummy_of(run.directory).is_alive


def test_the_next_start_cleans_up_after_a_dead_owner(abandon, begin):
    [directory] = abandon(1)
    dummy = dummy_of(directory)
    assert dummy.is_alive
    begin()
    assert not dummy.is_alive
    assert not directory.exists()


def test_the_guard_cleans_up_at_once_when_the_owner_is_killed(owner):
    process, directory = owner()
    dummy = dummy_of(directory)
    process.kill()
    block_until(lambda: not directory.exists())
    assert not dummy.is_alive


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=str)
def test_an_owner_that_is_terminated_leaves_nothing(owner, number):
    process, directory = owner()
    dummy = dummy_of(directory)
    process.send_signal(number)
    block_until(lambda: not directory.exists())
    assert not dummy.is_alive


def test_an_owner_that_forgets_to_end_its_run_leaves_nothing(owner):
    process, directory = owner()
    dummy = dummy_of(directory)
    process.communicate()
    assert not directory.exists()
    assert not dummy.is_alive


def test_a_process_that_was_not_recorded_yet_is_found(abandon):
    [directory] = abandon(1)
    dummy = dummy_of(directory)
    (directory / "processes" / "dummy.json").unlink()
    assert runs.reap() == [directory.name]
    assert not dummy.is_alive


def test_another_process_with_a_recorded_pid_is_left_alone(abandon, begin):
    other = dummy_of(begin().directory)
    [directory] = abandon(1)
    record = directory / "processes" / "dummy.json"
    content = json.loads(record.read_text()) | {"pid": other.pid}
    dummy = dummy_of(directory)
    record.write_text(json.dumps(content))
    assert runs.reap() == [directory.name]
    assert other.is_alive
    assert not dummy.is_alive  # its environment tells


def test_many_may_clean_up_at_once(abandon):
    directories = abandon(3)
    with ThreadPoolExecutor(8) as pool:
        reports = [pool.submit(runs.reap) for _ in range(8)]
        cleaned = sorted(name for report in reports for name in report.result())
    assert cleaned == sorted(directory.name for directory in directories)
    assert not any(directory.exists() for directory in directories)


def test_cleaning_up_does_not_disturb_runs_that_start(begin):
    with ThreadPoolExecutor(8) as pool:
        reports = [pool.submit(runs.reap) for _ in range(20)]
        started = [run.result() for run in [pool.submit(begin) for _ in range(4)]]
    assert [report.result() for report in reports] == [[]] * 20
    assert all(dummy_of(run.directory).is_alive for run in started)


def test_a_detached_run_stays_until_it_is_adopted_and_ended(begin):
    run = begin("playground")
    dummy = dummy_of(run.directory)
    run.detach()
    assert runs.reap() == []
    assert dummy.is_alive
    assert runs.detached() == [run.directory]

    adopted("playground").end()
    assert not dummy.is_alive
    assert runs.detached() == []


def test_a_detached_run_has_no_guard(begin):
    run = begin("playground")
    run.detach()
    assert [each.name for each in runs.recorded(run.directory)] == ["dummy"]
    adopted("playground").end()


def test_only_one_can_adopt(begin):
    begin("playground").detach()
    run = adopted("playground")
    with pytest.raises(runs.NameTaken, match="another process is working on 'playground'"):
        runs.adopt("playground")
    run.end()


def test_what_is_not_there_cannot_be_adopted(begin):
    begin("owned")
    assert runs.adopt("nobody") is None
    assert runs.adopt("owned") is None


def test_a_name_belongs_to_one_run(begin):
    begin("playground")
    with pytest.raises(runs.NameTaken, match="'playground' is running"):
        begin("playground")


@pytest.mark.parametrize("name", ["", "Upper", "a.b", "../etc", "-a", "a" * 41, "a b"])
def test_invalid_names_are_refused(name):
    with pytest.raises(runs.BadName, match="is not a valid name"):
        runs.checked_name(name)


def test_programs_of_a_run_see_little_of_our_environment(begin, monkeypatch):
    monkeypatch.setenv("ETCD_NAME", "surprise")
    dummy = dummy_of(begin().directory)
    block_until(lambda: b"sleep" in Path(f"/proc/{dummy.pid}/cmdline").read_bytes())
    assert b"surprise" not in Path(f"/proc/{dummy.pid}/environ").read_bytes()


def test_a_forked_child_does_not_end_the_run_of_its_parent(begin, monkeypatch):
    run = begin()
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: -1)
        run.end()
    assert process.vitals_of(dummy_of(run.directory).pid) is not None


def test_what_is_no_run_is_left_alone(begin):
    notes = runs.root() / "notes"
    notes.mkdir(parents=True)
    (notes / "todo.txt").write_text("buy milk")
    begin()
    assert (notes / "todo.txt").read_text() == "buy milk"


def test_a_broken_record_of_a_dead_owner_prevents_no_start(abandon, begin):
    (directory,) = abandon(1)
    dummy = dummy_of(directory)
    (directory / "processes" / "dummy.json").write_text('{"na')
    assert begin().directory.exists()
    dummy.kill()
