import pytest

from devcluster import binaries, runs
from devcluster.__main__ import main


@pytest.fixture
def no_go(home, monkeypatch):
    monkeypatch.setenv("PATH", str(home))


def test_build_prints_where_the_programs_are(fake_go, capsys):
    assert main(["build", "etcd"]) == 0
    assert capsys.readouterr().out == f"{binaries.TOOLS['etcd'].path}\n"


@pytest.mark.usefixtures("no_go")
def test_build_fails_where_nothing_can_be_built(capsys):
    assert main(["build"]) == 1
    assert "no `go` on the PATH" in capsys.readouterr().err


@pytest.mark.usefixtures("no_go")
def test_build_if_possible_only_says_why_nothing_was_built(capsys):
    assert main(["build", "--if-possible"]) == 0
    assert "no `go` on the PATH" in capsys.readouterr().err


def test_an_unknown_program_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["build", "kubectl"])
    assert "'kubectl' is none of etcd, kube-apiserver" in capsys.readouterr().err


def test_status_of_nothing_is_an_empty_list_and_a_failure(capsys):
    assert main(["status", "-o", "json"]) == 1
    assert capsys.readouterr().out == "[]\n"


def test_taking_down_what_is_not_up_is_fine(capsys):
    assert main(["down"]) == 0
    assert main(["down", "--all"]) == 0
    assert capsys.readouterr().err == "default: not up\nNothing is up.\n"


def test_who_takes_down_what_is_not_up_hears_what_is(capsys):
    runs.create("two").detach()
    assert main(["down"]) == 0
    assert main(["down", "--name", "two"]) == 0
    assert capsys.readouterr().err == (
        "default: not up; others are: two (python -m devcluster down --name NAME)\n"
        "two: down, its data deleted\n"
    )


def test_status_of_nothing_names_commands_that_start_something(capsys):
    assert main(["status"]) == 1
    said = capsys.readouterr().err
    assert "make cluster-up" in said
    assert "python -m devcluster up" in said


def test_clean_removes_programs_that_are_not_pinned_any_more(fake_go):
    main(["build", "etcd"])
    old = binaries.cache_directory() / "etcd-v3.0.0-0123456789ab"
    old.mkdir()
    assert main(["clean"]) == 0
    assert binaries.cached() == [binaries.TOOLS["etcd"].path.parent]
    assert main(["clean", "--binaries"]) == 0
    assert binaries.cached() == []


def test_help_has_examples(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "KUBECONFIG=$(python -m devcluster up) && export KUBECONFIG" in capsys.readouterr().out
