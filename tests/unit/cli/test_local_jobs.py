"""Which jobs there are, and which of them is meant."""

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from mpi_operator.build.ownership import MPI_JOBS
from mpi_operator.cli import local_jobs
from mpi_operator.cli.local_jobs import FinishedJob, LocalJob, RunningJob, chosen
from mpi_operator.cli.outcome import Refusal
from mpi_operator.kube.resources import Manifest
from mpi_operator.local.apiserver.cluster import LocalCluster
from mpi_operator.local.apiserver.served_kinds import Kind
from mpi_operator.local.runs import run_directories
from mpi_operator.local.runs.finished import FinishedRun
from mpi_operator.local.runs.records import End, Record
from mpi_operator.local.socket import socket_messages
from mpi_operator.local.socket.socket_client import RemoteCluster
from mpi_operator.local.socket.socket_server import serving

RUNNING = [("pi", "1-a"), ("pi", "2-b"), ("e", "3-c")]
ENDED = [("e", "9-i"), ("tau", "8-h"), ("tau", "7-g")]
END = End("Interrupted", "was interrupted", 130)


def job(name: str) -> Manifest:
    return {"apiVersion": MPI_JOBS.api_version, "kind": MPI_JOBS.kind, "metadata": {"name": name}}


def finished(name: str, run: str, end: End = END) -> FinishedJob:
    return FinishedJob(run, FinishedRun(Path(run), Record([])), job(name), end)


def jobs() -> list[LocalJob]:
    return [
        *(RunningJob(run, RemoteCluster(Path("/runs") / run), job(name)) for name, run in RUNNING),
        *(finished(name, run) for name, run in ENDED),
    ]


@pytest.mark.parametrize(
    ("name", "run", "found"),
    [
        pytest.param("e", None, "3-c", id="the one that runs, though another has ended"),
        pytest.param("e", "9-i", "9-i", id="the one that has ended, by its run"),
        pytest.param("pi", "2-b", "2-b", id="by name and run"),
        pytest.param("tau", None, "8-h", id="the one that ended last"),
    ],
)
def test_one_is_meant(name, run, found):
    assert chosen(jobs(), name, run).run == found


THERE_IS = "there is pi (run 1-a), pi (run 2-b), e (run 3-c), e (run 9-i), tau (run 8-h) and 1 more"


@pytest.mark.parametrize(
    ("name", "run", "sentence"),
    [
        pytest.param(
            "pi",
            None,
            "2 jobs are called pi; say which with --run, one of: 1-a, 2-b",
            id="several",
        ),
        pytest.param("xyz", None, f"there is no job xyz; {THERE_IS}", id="none"),
        pytest.param(
            "tao", None, "there is no job tao; did you mean tau (run 8-h)?", id="a typing error"
        ),
        pytest.param("xyz", "3-c", f"there is no job xyz in run 3-c; {THERE_IS}", id="another run"),
    ],
)
def test_what_is_unclear_is_told(name, run, sentence):
    with pytest.raises(Refusal) as told:
        chosen(jobs(), name, run)
    assert str(told.value) == sentence


def test_a_job_that_did_not_live_to_say_how_it_ended_has_it_said():
    ended = finished("pi", "1-a")
    assert (ended.state, ended.summary) == ("Interrupted", "pi was interrupted")


def test_what_a_job_says_about_its_end_counts_more():
    success = {"type": "Succeeded", "status": "True", "message": "all went well"}
    manifest = {**job("pi"), "status": {"conditions": [success]}}
    ended = replace(finished("pi", "1-a"), manifest=manifest)
    assert (ended.state, ended.summary) == ("Succeeded", "all went well")


async def test_a_run_that_does_not_answer_is_told_and_the_others_are_listed(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(local_jobs, "_PATIENCE_SECONDS", 0.05)
    silent, dead, well = (
        run_directories.root() / name for name in ("1-silent", "2-dead", "3-well")
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
            assert [str(job) for job in await local_jobs.everything()] == ["pi (run 3-well)"]
    assert capsys.readouterr().err == "mpijob: run 1-silent is there but does not answer\n"
