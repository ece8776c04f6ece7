"""Run directories: what a dead owner left is cleaned up, and nothing else."""

import os
import signal
import subprocess
import sys

import pytest

from mpi_operator.local.kubelet.host_files import MountPoints
from mpi_operator.local.runs import run_directories
from mpi_operator.local.sandbox.process_tree import RUN_VARIABLE

OWNER = """
import sys, time
from pathlib import Path
from mpi_operator.local.runs import run_directories
print(run_directories.create(Path(sys.argv[1])).directory, flush=True)
time.sleep(60)
"""


@pytest.fixture
def owner(tmp_path):
    """Another process that owns a run, and the directory of it."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)], env=env, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    yield process, process.stdout.readline().strip()
    process.kill()
    process.communicate()


def test_a_run_is_removed_at_its_end(tmp_path):
    run = run_directories.create(tmp_path)
    (run.directory / "x").write_text("y")
    run.end()
    run.end()
    assert [entry.name for entry in tmp_path.iterdir()] == [".lock"]


def test_a_free_name_is_one_that_no_other_run_has(tmp_path):
    runs = [run_directories.create(tmp_path) for _ in range(4)]
    claimed = [run.claim("pi", is_free=True) for run in runs[:3]]
    assert claimed == ["pi", "pi-2", "pi-3"]
    assert runs[3].claim("pi", is_free=False) == "pi"
    for run in runs:
        run.end()
    again = run_directories.create(tmp_path)
    assert again.claim("pi", is_free=True) == "pi"
    again.end()


def test_the_run_of_a_living_owner_is_left_alone(tmp_path, owner):
    _, directory = owner
    assert run_directories.reap(tmp_path) == []
    assert os.path.isdir(directory)


def test_what_a_dead_owner_left_is_cleaned_up(tmp_path, owner):
    process, directory = owner
    left = subprocess.Popen(["sleep", "60"], env={RUN_VARIABLE: directory}, start_new_session=True)
    other = subprocess.Popen(["sleep", "60"], env={RUN_VARIABLE: f"{directory}-x"})
    os.makedirs(f"{directory}/pods/1/locked")
    os.chmod(f"{directory}/pods/1/locked", 0)
    process.kill()
    process.wait()
    try:
        run = run_directories.create(tmp_path)
        assert left.wait(60) == -signal.SIGKILL
        assert other.poll() is None
        assert not os.path.exists(directory)
        run.end()
    finally:
        other.kill()
        other.wait()
        left.wait()


def test_directories_without_a_lock_are_left_alone(tmp_path):
    (tmp_path / "holiday").mkdir()
    (tmp_path / "holiday" / "photo").touch()
    assert run_directories.reap(tmp_path) == []
    assert (tmp_path / "holiday" / "photo").exists()


def test_mount_points_are_removed_again(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    run = run_directories.create(tmp_path / "runs")
    mountpoints = MountPoints(run.directory, [home])
    mountpoints.make([f"{home}/.ssh/deep", str(tmp_path / "elsewhere")])
    assert (home / ".ssh/deep").is_dir()
    assert not (tmp_path / "elsewhere").exists()
    mountpoints.close()
    run.end()
    assert list(home.iterdir()) == []


def test_a_mount_point_in_use_stays(tmp_path):
    run = run_directories.create(tmp_path / "runs")
    mountpoints = MountPoints(run.directory, [tmp_path])
    mountpoints.make([f"{tmp_path}/data"])
    (tmp_path / "data" / "mine").touch()
    mountpoints.close()
    run.end()
    assert (tmp_path / "data" / "mine").exists()


def test_the_last_run_that_needs_a_mount_point_removes_it(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    made = [run_directories.create(tmp_path / f"runs-{number}") for number in range(2)]
    needed = [MountPoints(run.directory, [home]) for run in made]
    for run, mountpoints in zip(made, needed, strict=True):
        mountpoints.make([f"{home}/.ssh"])
        assert (home / ".ssh").is_dir(), run
    for run, mountpoints in zip(made, needed, strict=True):
        assert (home / ".ssh").is_dir()
        mountpoints.close()
        run.end()
    assert list(home.iterdir()) == []


def test_a_directory_of_the_user_is_not_removed(tmp_path):
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    made = [run_directories.create(tmp_path / f"runs-{number}") for number in range(2)]
    for run in made:
        MountPoints(run.directory, [home]).make([f"{home}/.ssh"])
    for run in made:
        run.end()
    assert (home / ".ssh").is_dir()
