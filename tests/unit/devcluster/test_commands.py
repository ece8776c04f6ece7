import pytest

from devcluster import binaries, cluster, runs, slots
from devcluster.__main__ import main
from devcluster.binaries import USES


@pytest.fixture
def no_go(home, monkeypatch):
    monkeypatch.setenv("PATH", str(home))


def test_build_prints_where_the_programs_are(fake_go, capsys):
    assert main(["build", "etcd"]) == 0
    assert capsys.readouterr().out == f"{binaries.TOOLS['etcd'].path}\n"


@pytest.mark.parametrize(
    ("asked", "built"),
    [
        pytest.param([], USES["control-plane"], id="nothing asked: what most tests need"),
        pytest.param(["nodes"], USES["nodes"], id="all for a use"),
        pytest.param(["etcd", "nodes"], ("etcd", *USES["nodes"]), id="a program and a use"),
    ],
)
def test_build_takes_programs_and_uses(home, monkeypatch, capsys, asked, built):
    for name in binaries.TOOLS:
        (home / name).touch(mode=0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(home))
    assert main(["build", *asked]) == 0
    assert capsys.readouterr().out.split() == [str(home / name) for name in built]


@pytest.mark.usefixtures("no_go")
def test_build_fails_where_nothing_can_be_built(capsys):
    assert main(["build"]) == 1
    assert "`go` is not on the PATH" in capsys.readouterr().err


@pytest.mark.usefixtures("no_go")
def test_build_if_possible_only_says_why_nothing_was_built(capsys):
    assert main(["build", "--if-possible"]) == 0
    assert "`go` is not on the PATH" in capsys.readouterr().err


def test_an_unknown_program_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["build", "minikube"])
    assert "'minikube' is not one of etcd, kube-apiserver" in capsys.readouterr().err


def test_status_of_nothing_is_an_empty_list_and_a_failure(capsys):
    assert main(["status", "-o", "json"]) == 1
    assert capsys.readouterr().out == "[]\n"


def test_down_of_a_cluster_that_is_not_up_succeeds(capsys):
    assert main(["down"]) == 0
    assert main(["down", "--all"]) == 0
    assert capsys.readouterr().err == "default: not up\nNo cluster is up.\n"


def test_down_of_a_cluster_that_is_not_up_names_those_that_are(capsys):
    runs.create("two").detach()
    assert main(["down"]) == 0
    assert main(["down", "--name", "two"]) == 0
    assert capsys.readouterr().err == (
        "default: not up; these are up: two (use --name NAME)\ntwo: down, its data deleted\n"
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


def test_clean_removes_images_only_when_asked(home, monkeypatch):
    monkeypatch.setattr(slots, "DIRECTORY", home / "slots")
    (home / "slots").mkdir()
    (home / "slots" / "1").write_text(str(home))  # claimed by a directory that exists
    stores = [home / "cache" / "mpi-operator" / "nodes" / name for name in ("0-0", "1-0")]
    for store in stores:
        store.mkdir(parents=True)
    assert main(["clean"]) == 0
    assert [store.exists() for store in stores] == [True, True]
    assert main(["clean", "--images"]) == 0
    assert [store.exists() for store in stores] == [False, True]


def test_nodes_where_they_are_impossible_are_an_error_that_says_why(monkeypatch, capsys):
    monkeypatch.setattr(cluster, "unsupported_reason", lambda: "Nodes need a miracle.")
    assert main(["up", "--nodes", "2"]) == 1
    assert "error: Nodes need a miracle." in capsys.readouterr().err


def test_images_cannot_be_loaded_into_what_is_not_up(capsys):
    assert main(["load", "image.tar"]) == 1
    assert "not up" in capsys.readouterr().err


def test_help_has_examples(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "KUBECONFIG=$(python -m devcluster up) && export KUBECONFIG" in capsys.readouterr().out
