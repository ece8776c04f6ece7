"""Records of finished runs: what they contain, and how long they are kept."""

import os
import time
from pathlib import Path

import pytest

from mpi_operator.kube.client import Selector
from mpi_operator.kube.errors import NotFound
from mpi_operator.kube.resources import PODS, Manifest
from mpi_operator.local.kubelet import pod_logs
from mpi_operator.local.runs import records, run_directories
from mpi_operator.local.runs.finished import FinishedRun
from mpi_operator.local.runs.records import DAYS_KEPT, RUNS_KEPT, End, Record

DAY = 86_400.0
END = End("Succeeded", "succeeded", 0)


@pytest.fixture
def root(tmp_path):
    return tmp_path / "local"


def pod(name: str, *volumes: Manifest) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"containers": [{"name": "main"}], "volumes": [*volumes]},
    }


def printed(run: Path, number: int, name: str, *starts: bytes) -> Path:
    """The directory of a pod with a log for each start of its container."""
    directory = run / "pods" / f"{number}-{name[:24]}"
    pod_logs.create(directory, name)
    logs = directory / "logs" / "main"
    logs.mkdir()
    for start, text in enumerate(starts):
        (logs / f"{start}.log").write_bytes(text)
    return directory


def ended(root: Path, *pods: Manifest, end: End | None = END, keep: bool = False) -> str:
    """Create and end a run; return its name."""
    run = run_directories.create(root)
    records.write(run.directory, Record([*pods], {"pi": end} if end else {}))
    if keep:
        records.mark_kept(run.directory)
    run.end()
    return run.directory.name


async def log_of(run: Path, name: str) -> list[bytes]:
    record = records.read(run)
    assert record is not None
    return [line async for line in FinishedRun(run, record).log(name, "default")]


def test_a_run_without_a_record_is_not_archived(root):
    run_directories.create(root).end()
    assert records.finished([root]) == []


def test_the_last_record_of_a_run_is_archived(root):
    name = ended(root, pod("a"))
    [run] = records.finished([root])
    assert run.name == name
    assert records.read(run) == Record([pod("a")], {"pi": END})
    assert [entry.name for entry in root.iterdir()] == [".lock"]


def test_other_users_cannot_read_it(root):
    ended(root, pod("a"))
    assert records.finished([root])[0].stat().st_mode & 0o777 == 0o700


def test_the_clean_up_archives_the_record_of_a_killed_run(root):
    run = run_directories.create(root)
    records.write(run.directory, Record([pod("a")]))
    assert run._lock is not None
    os.close(run._lock)  # as the kernel does for a killed process
    assert run_directories.reap(root) == [run.directory.name]
    [found] = records.finished([root])
    assert records.read(found) == Record([pod("a")])


async def test_the_log_is_that_of_the_last_start_of_the_last_pod_of_a_name(root):
    name = "a-pod-with-a-name-that-is-longer-than-its-directory"
    run = run_directories.create(root)
    pod_logs.remove_pod(printed(run.directory, 2, name, b"gone\n"))
    printed(run.directory, 10, name, b"first\n", b"second\nand last")
    printed(run.directory, 11, name[:30], b"of another one\n")
    records.write(run.directory, Record([pod(name)], {"pi": END}))
    run.end()
    [found] = records.finished([root])
    assert await log_of(found, name) == [b"second", b"and last"]


async def test_logs_of_a_deleted_pod_are_kept(root):
    run = run_directories.create(root)
    pod_logs.remove_pod(printed(run.directory, 1, "a", b"hi\n"))
    records.write(run.directory, Record([pod("a")], {"pi": END}))
    run.end()
    assert await log_of(records.finished([root])[0], "a") == [b"hi"]


async def test_an_unknown_pod_is_not_found(root):
    ended(root, pod("a"))
    with pytest.raises(NotFound):
        await log_of(records.finished([root])[0], "b")


async def test_a_long_log_loses_its_beginning(root, monkeypatch):
    monkeypatch.setattr(records, "_LOG_BYTES", 0)
    run = run_directories.create(root)
    printed(run.directory, 1, "a", b"".join(b"line %06d\n" % number for number in range(50_000)))
    records.write(run.directory, Record([pod("a")], {"pi": END}))
    run.end()
    first, second, *_, last = await log_of(records.finished([root])[0], "a")
    assert first == pod_logs.TRUNCATED
    assert second.startswith(b"line ")
    assert len(second) == len(last)
    assert last == b"line 049999"


@pytest.mark.parametrize("keep", [False, True])
def test_the_files_of_pods_are_kept_on_demand_but_no_secrets(root, keep):
    run = run_directories.create(root)
    if keep:
        records.mark_kept(run.directory)
    for number, name in enumerate(("a", "gone")):
        directory = printed(run.directory, number, name, b"")
        for volume in ("data", "keys"):
            (directory / "volumes" / volume).mkdir(parents=True)
            (directory / "volumes" / volume / "file").touch()
    pod_logs.remove_pod(directory)
    volumes = ({"name": "data", "emptyDir": {}}, {"name": "keys", "secret": {"secretName": "k"}})
    records.write(run.directory, Record([pod("a", *volumes), pod("gone", *volumes)], {"pi": END}))
    run.end()
    [found] = records.finished([root])
    kept = sorted(str(file.relative_to(found)) for file in found.glob("pods/*/volumes/*/file"))
    assert kept == (["pods/0-a/volumes/data/file", "pods/1-gone/volumes/data/file"] if keep else [])


@pytest.mark.parametrize(
    ("days", "count"),
    [
        pytest.param([], 0, id="none"),
        pytest.param([0, 1, DAYS_KEPT - 0.1], 3, id="young ones"),
        pytest.param([0, DAYS_KEPT + 0.1, 100], 1, id="old ones"),
        pytest.param([0] * 30, RUNS_KEPT, id="many"),
    ],
)
def test_how_many_records_are_retained(days, count):
    now = 1e9
    assert records.retained([now - each * DAY for each in days], now) == count


def test_old_records_are_deleted_with_the_next_one_unless_kept(root):
    old, kept = ended(root, pod("a")), ended(root, pod("b"), keep=True)
    for name in (old, kept):
        long_ago = time.time() - (DAYS_KEPT + 1) * DAY
        os.utime(records.finished_directory(root) / name / "record.json", (long_ago, long_ago))
    new = ended(root, pod("c"))
    assert [run.name for run in records.finished([root])] == [new, kept]


def test_a_deleted_record_is_gone(root):
    ended(root, pod("a"), keep=True)
    records.delete(records.finished([root])[0])
    assert list(records.finished_directory(root).iterdir()) == []


def test_an_unreadable_record_is_ignored(root):
    ended(root, pod("a"))
    [run] = records.finished([root])
    (run / "record.json").write_text("{")
    assert records.read(run) is None


async def test_objects_are_selected_as_in_a_cluster(root):
    labelled = pod("a")
    labelled["metadata"]["labels"] = {"role": "worker"}
    reader = FinishedRun(root, Record([labelled, pod("b"), {"kind": "Event", "apiVersion": "v1"}]))
    assert (await reader.list(PODS, "default", Selector(labels="role=worker"))).items == [labelled]
    found = await reader.list(PODS, selector=Selector(fields="metadata.name=b"))
    assert found.items == [pod("b")]
