"""Which jobs there are, and which of them a name selects."""

import asyncio
import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from mpi_operator.build.ownership import MPI_JOBS
from mpi_operator.cli.command_errors import CommandError
from mpi_operator.cli.job_output.outcome import interrupted
from mpi_operator.cli.known_jobs import local_jobs
from mpi_operator.cli.known_jobs.local_jobs import FinishedJob, LocalJob, RunningJob, select
from mpi_operator.kube.resources import Manifest
from mpi_operator.local.apiserver.cluster import LocalCluster
from mpi_operator.local.apiserver.served_kinds import Kind
from mpi_operator.local.runs import records, run_directories
from mpi_operator.local.runs.finished import FinishedRun
from mpi_operator.local.runs.records import End, Record
from mpi_operator.local.socket import socket_messages
from mpi_operator.local.socket.socket_client import RemoteCluster
from mpi_operator.local.socket.socket_server import serving

RUNNING = [("pi", "1-a"), ("pi", "2-b"), ("e", "3-c")]
ENDED = [("e", "9-i"), ("tau", "8-h"), ("tau", "7-g")]

INTERRUPTED = interrupted(2)


def job(name: str) -> Manifest:
    return {"apiVersion": MPI_JOBS.api_version, "kind": MPI_JOBS.kind, "metadata": {"name": name}}


def finished(name: str, run: str, end: End = INTERRUPTED) -> FinishedJob:
    return FinishedJob(run, FinishedRun(Path(run), Record([])), job(name), end)


def jobs() -> list[LocalJob]:
    return [
        *(RunningJob(run, RemoteCluster(Path("/runs") / run), job(name)) for name, run in RUNNING),
        *(finished(name, run) for name, run in ENDED),
    ]


@pytest.mark.parametrize(
    ("name", "run", "found"),
    [
        pytest.param("e", None, "3-c", id="the running one, although another has ended"),
        pytest.param("e", "9-i", "9-i", id="a finished one, by its run"),
        pytest.param("pi", "2-b", "2-b", id="by name and run"),
        pytest.param("tau", None, "8-h", id="the one that ended last"),
    ],
)
def test_a_name_selects_one_job(name, run, found):
    assert select(jobs(), name, run).run == found


YOURS = "your jobs are pi, e, tau"


@pytest.mark.parametrize(
    ("name", "run", "message"),
    [
        pytest.param(
            "pi",
            None,
            "2 running jobs are called pi: add --run 1-a or --run 2-b",
            id="several",
        ),
        pytest.param("xyz", None, f"job xyz not found: {YOURS}", id="none"),
        pytest.param("tao", None, "job tao not found: did you mean tau?", id="a typing error"),
        pytest.param(
            "tau", "3-c", "job tau in run 3-c not found: its runs are 8-h, 7-g", id="no such run"
        ),
        pytest.param("xyz", "3-c", f"job xyz in run 3-c not found: {YOURS}", id="another run"),
    ],
)
def test_an_unclear_name_is_an_error(name, run, message):
    with pytest.raises(CommandError) as raised:
        select(jobs(), name, run)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("names", "message"),
    [
        pytest.param(["pi", "pi", "pi"], "job xyz not found: your job is pi", id="three runs"),
        pytest.param(
            [*"abcdefg", *"abcdefg"],
            "job xyz not found: your jobs are a, b, c, d, e and 2 more",
            id="many jobs",
        ),
    ],
)
def test_each_name_is_printed_once(names, message):
    known: list[LocalJob] = [finished(name, f"{run}-a") for run, name in enumerate(names)]
    with pytest.raises(CommandError) as raised:
        select(known, "xyz", None)
    assert str(raised.value) == message


def test_an_unfinished_job_has_the_end_of_its_run():
    ended = finished("pi", "1-a")
    assert (ended.state, ended.summary) == ("Interrupted", "pi was interrupted")


def test_the_status_of_a_finished_job_comes_first():
    success = {"type": "Succeeded", "status": "True", "message": "all went well"}
    manifest = {**job("pi"), "status": {"conditions": [success]}}
    ended = replace(finished("pi", "1-a"), manifest=manifest)
    assert (ended.state, ended.summary) == ("Succeeded", "pi: all went well")


async def test_a_run_that_does_not_answer_is_reported_and_the_others_are_listed(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))  # runs without a home are there
    silent, dead, well = (
        run_directories.root(tmp_path / "mpi-operator") / name
        for name in ("1-silent", "2-dead", "3-well")
    )
    for directory in (silent, dead, well):
        directory.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as frozen:
        frozen.bind(str(silent / socket_messages.SOCKET))
        frozen.listen()
        cluster = LocalCluster([Kind(MPI_JOBS)])
        async with serving(cluster, well):
            metadata = {"name": "pi", "namespace": "default"}
            await cluster.create(MPI_JOBS, {"metadata": metadata})
            assert [str(job) for job in await local_jobs.all_jobs()] == ["pi (run 3-well)"]
    assert capsys.readouterr().err == "mpijob: run 1-silent did not answer within 5s\n"


async def test_a_job_is_found_while_its_run_is_about_to_end(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    run = run_directories.create(run_directories.root(tmp_path / "mpi-operator"))
    records.write(run.directory, Record([job("pi")], {"pi": INTERRUPTED}))

    looking = asyncio.create_task(local_jobs.find("pi", None))
    await asyncio.sleep(0)  # it has found no socket, for the run has closed it
    await asyncio.to_thread(run.end)

    assert isinstance(await looking, FinishedJob)


async def test_a_job_is_lost_if_its_run_is_killed_right_after_the_cleanup(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    run = run_directories.create(run_directories.root(tmp_path / "mpi-operator"))
    records.write(run.directory, Record([job("pi")], {}))
    reap = local_jobs.reap

    async def reap_then_kill() -> None:
        await reap()
        if run._lock is not None:
            os.close(run._lock)  # as the kernel does for a process that was killed
            run._lock = None

    monkeypatch.setattr(local_jobs, "reap", reap_then_kill)
    found = await local_jobs.find("pi", None)
    assert (type(found), found.state) == (FinishedJob, "Lost")


async def test_a_job_whose_run_ends_after_its_answer_is_listed_once(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    run = run_directories.create(run_directories.root(tmp_path / "mpi-operator"))
    records.write(run.directory, Record([job("pi")], {"pi": INTERRUPTED}))

    async def answer_then_end() -> list[RunningJob]:
        await asyncio.to_thread(run.end)
        return [RunningJob(run.directory.name, RemoteCluster(run.directory), job("pi"))]

    monkeypatch.setattr(local_jobs, "running", answer_then_end)
    assert [type(each) for each in await local_jobs.all_jobs()] == [FinishedJob]
