"""What a record of several jobs keeps when one of them is deleted."""

from pathlib import Path

import pytest

from mpi_operator.api import labels
from mpi_operator.cli.known_jobs import job_records, local_jobs
from mpi_operator.kube.resources import Manifest
from mpi_operator.local.kubelet import pod_logs
from mpi_operator.local.runs import records, run_directories
from mpi_operator.local.runs.records import End, Record
from tests.support.mpijobs import mpijob

GOOD, BAD = End("Succeeded", "succeeded", 0), End("Failed", "failed: it broke", 3, "a cause")


def pod(job: str) -> Manifest:
    metadata = {"name": f"{job}-launcher-x", "labels": {labels.JOB_NAME: job}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}}


def event(about: Manifest) -> Manifest:
    regarding = {"kind": about["kind"], "name": about["metadata"]["name"]}
    metadata = {"name": f"about-{regarding['name']}"}
    return {"apiVersion": "v1", "kind": "Event", "metadata": metadata, "involvedObject": regarding}


def objects(job: str) -> list[Manifest]:
    return [mpijob(job), pod(job), event(mpijob(job)), event(pod(job))]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """The directory of a finished run of two jobs, whose files are kept."""
    root = tmp_path / "local"
    monkeypatch.setattr(run_directories, "roots", lambda: [root])
    active = run_directories.create(root)
    for number, job in enumerate(("a", "b")):
        directory = active.directory / "pods" / f"{number}-{job}"
        pod_logs.create(directory, f"{job}-launcher-x")
        (directory / "logs" / "mpi").mkdir()
        (directory / "logs" / "mpi" / "0.log").write_text(job)
    records.mark_kept(active.directory)
    both = Record([*objects("a"), *objects("b")], {"a": GOOD, "b": BAD})
    records.write(active.directory, both)
    active.end()
    [finished] = records.finished([root])
    return finished


def files(run: Path) -> set[str]:
    return {str(path.relative_to(run)) for path in run.glob("*/*")}


def test_each_job_has_its_own_end(run):
    assert {job.name: job.end for job in local_jobs.finished()} == {"a": GOOD, "b": BAD}


def test_a_job_without_an_end_was_lost(run):
    records.write(run, Record([mpijob("a"), mpijob("b")], {"a": GOOD}))
    assert [job.end.state for job in local_jobs.finished()] == ["Succeeded", "Lost"]


def test_a_deleted_job_leaves_the_others_of_its_run(run):
    assert files(run) == {"logs/0-a", "logs/1-b", "pods/0-a", "pods/1-b"}
    ended = (run / "record.json").stat().st_mtime
    job_records.delete(run, "a")
    assert records.read(run) == Record(objects("b"), {"b": BAD})
    assert files(run) == {"logs/1-b", "pods/1-b"}
    assert (run / "record.json").stat().st_mtime == pytest.approx(ended, abs=1e-3)


def test_the_last_job_takes_its_run_along(run):
    for job in ("a", "b"):
        job_records.delete(run, job)
    assert not run.exists()
