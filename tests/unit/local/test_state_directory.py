"""Where the state of runs is, if some directories cannot be written."""

import os

import pytest

from mpi_operator.local.runs import state_directory

NAME = f"mpi-operator-{os.getuid()}"


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Paths of the three parents, of which those that a test does not create cannot be created."""
    (tmp_path / "file").touch()
    for variable in ("XDG_STATE_HOME", "TMPDIR"):
        monkeypatch.setenv(variable, str(tmp_path / "file" / variable))
    monkeypatch.setattr(state_directory, "_TMP", str(tmp_path / "tmp"))
    return tmp_path


def test_the_own_directory_is_the_first_choice(places, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(places / "own"))
    assert state_directory.writable() == (places / "own" / "mpi-operator", "")


def test_the_temporary_directory_of_the_user_comes_before_that_of_the_machine(places, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(places / "mine"))
    assert state_directory.writable().path == places / "mine" / NAME


def test_that_of_the_machine_is_the_last_choice(places):
    found = state_directory.writable()
    assert found.path == places / "tmp" / NAME
    assert found.why_temporary == f"{places}/file/XDG_STATE_HOME/mpi-operator: Not a directory"
    assert found.path in state_directory.all_places()


def test_without_any_the_error_names_all(places, monkeypatch):
    monkeypatch.setattr(state_directory, "_TMP", str(places / "file" / "tmp"))
    with pytest.raises(state_directory.Unwritable) as raised:
        state_directory.writable()
    problems = str(raised.value).split("; ")
    assert [each.removeprefix(f"{places}/file/") for each in problems] == [
        "XDG_STATE_HOME/mpi-operator: Not a directory",
        f"TMPDIR/{NAME}: Not a directory",
        f"tmp/{NAME}: Not a directory",
    ]


@pytest.mark.parametrize("mode", [0o755, 0o777])
def test_a_temporary_directory_that_is_not_private_is_not_used(places, monkeypatch, mode):
    shared = places / "tmp" / NAME
    shared.mkdir(parents=True)
    shared.chmod(mode)
    assert shared not in state_directory.all_places()
    with pytest.raises(state_directory.Unwritable, match="not a private directory of this user"):
        state_directory.writable()
    monkeypatch.setenv("TMPDIR", str(places / "mine"))
    assert state_directory.writable().path == places / "mine" / NAME
