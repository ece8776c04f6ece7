"""Which jobs there are, and which of them is meant."""

import socket
from pathlib import Path

import pytest

from mpi_operator.build.ownership import MPI_JOBS
from mpi_operator.cli import local_jobs
from mpi_operator.cli.local_jobs import LocalJob, chosen
from mpi_operator.cli.outcome import Refusal
from mpi_operator.local import requests, runs
from mpi_operator.local.cluster import LocalCluster
from mpi_operator.local.kinds import Kind
from mpi_operator.local.remote import RemoteCluster
from mpi_operator.local.server import serving

KNOWN = [("pi", "1-a"), ("pi", "2-b"), ("e", "3-c")]


def jobs() -> list[LocalJob]:
    return [
        LocalJob(RemoteCluster(Path("/runs") / run), {"metadata": {"name": name}})
        for name, run in KNOWN
    ]


@pytest.mark.parametrize(
    ("name", "run", "found"),
    [
        pytest.param("e", None, "3-c", id="by name"),
        pytest.param("pi", "2-b", "2-b", id="by name and run"),
    ],
)
def test_one_is_meant(name, run, found):
    assert chosen(jobs(), name, run).run == found


@pytest.mark.parametrize(
    ("name", "run", "sentence"),
    [
        pytest.param(
            "pi",
            None,
            "2 jobs are called pi; say which with --run, one of: 1-a, 2-b",
            id="several",
        ),
        pytest.param(
            "tau",
            None,
            "there is no job tau; there is pi (run 1-a), pi (run 2-b), e (run 3-c)",
            id="none",
        ),
        pytest.param(
            "pi",
            "3-c",
            "there is no job pi in run 3-c; there is pi (run 1-a), pi (run 2-b), e (run 3-c)",
            id="another run",
        ),
    ],
)
def test_what_is_unclear_is_told(name, run, sentence):
    with pytest.raises(Refusal) as told:
        chosen(jobs(), name, run)
    assert str(told.value) == sentence


async def test_a_run_that_does_not_answer_is_told_and_the_others_are_listed(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(local_jobs, "_PATIENCE_SECONDS", 0.05)
    silent, dead, well = (runs.root() / name for name in ("1-silent", "2-dead", "3-well"))
    for directory in (silent, dead, well):
        directory.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as frozen:
        frozen.bind(str(silent / requests.SOCKET))
        frozen.listen()
        cluster = LocalCluster([Kind(MPI_JOBS)])
        async with serving(cluster, well):
            metadata = {"name": "pi", "namespace": "default"}
            await cluster.create(MPI_JOBS, {"metadata": metadata})
            assert [str(job) for job in await local_jobs.everything()] == ["pi (run 3-well)"]
    assert capsys.readouterr().err == "mpijob: run 1-silent is there but does not answer\n"
