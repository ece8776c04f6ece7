"""Shared memory of pods that have no /dev/shm of their own."""

import mmap
import os
from pathlib import Path

import pytest

from mpi_operator.local.kubelet import host_files
from mpi_operator.local.kubelet.container_config import shared_memory_variables
from mpi_operator.local.runs import run_directories


@pytest.fixture
def run(tmp_path):
    directory = tmp_path / f"run-{os.getpid()}"
    directory.mkdir()
    return directory


def made(run: Path, pod: str) -> Path:
    directory = host_files.make_shared_memory(run, pod)
    if directory is None:
        pytest.skip("this machine has no /dev/shm")
    return directory


def test_each_pod_has_a_directory_and_with_the_run_all_go(run):
    first, second = made(run, "1-a"), made(run, "2-b")
    assert first.is_dir()
    assert second.is_dir()
    assert first.parent == second.parent
    host_files.remove(run)
    assert not first.parent.exists()
    host_files.remove(run)


def test_leftovers_of_mpich_are_removed_unless_they_are_in_use(run):
    memory = made(run, "1-a").parents[1]
    left, opened, mapped = (memory / f"mpich_shm_{os.getpid()}{end}" for end in "abc")
    for path in (left, opened, mapped):
        path.write_bytes(b"x" * mmap.PAGESIZE)
    with mapped.open("r+b") as file:
        pages = mmap.mmap(file.fileno(), 0)
    try:
        with opened.open():
            host_files.remove(run)
            assert [path.exists() for path in (left, opened, mapped)] == [False, True, True]
    finally:
        pages.close()
        opened.unlink()
        mapped.unlink()


def test_what_a_dead_owner_left_goes_with_the_next_start(tmp_path):
    dead = run_directories.create(tmp_path)
    left = made(dead.directory, "1-a")
    assert dead._lock is not None
    os.close(dead._lock)  # as the kernel does when an owner dies
    assert run_directories.reap(tmp_path) == [dead.directory.name]
    assert not left.parent.exists()


def test_a_link_to_elsewhere_is_not_followed(run, tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    (run / "shm").symlink_to(precious)
    host_files.remove(run)
    assert precious.is_dir()


@pytest.mark.parametrize("name", ["data", "été-1.5_b", "a@b+c%"])
def test_a_path_that_is_one_word_needs_no_link(tmp_path, name):
    assert host_files.as_word(tmp_path / name, tmp_path / "links", "l-0") == tmp_path / name
    assert not (tmp_path / "links").exists()


@pytest.mark.parametrize("name", ["sp ace", "no\u00a0break", "a;b", "it's", "$HOME", "a:b", "(x)"])
def test_another_path_gets_a_link_that_stays(tmp_path, name):
    data, links = tmp_path / name, tmp_path / "links"
    data.mkdir()
    for _ in range(2):  # a container that is restarted
        assert host_files.as_word(data, links, "l-0") == links / "l-0"
    assert (links / "l-0").samefile(data)


def test_a_pod_whose_path_a_shell_would_split_has_a_link(run, tmp_path):
    memory = made(run, "1-a")
    assert host_files.pod_link(tmp_path / "1-a", memory) is None
    link = host_files.pod_link(tmp_path / "a&b" / "1-a", memory)
    assert link is not None
    assert host_files.is_word(link)
    host_files.remove(run)


def test_what_a_container_declares_is_not_changed(run):
    own = {"OMPI_MCA_btl_sm_backing_directory": "/mine"}
    given = shared_memory_variables(run, own)
    assert "OMPI_MCA_btl_sm_backing_directory" not in given
    assert given["OMPI_MCA_osc_sm_backing_directory"] == str(run)
