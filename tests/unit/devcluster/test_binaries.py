import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from devcluster import binaries
from devcluster.binaries import TOOLS, BuildFailed, CannotBuild, Say

ETCD = TOOLS["etcd"]


def quiet(line: str) -> None:
    """Nobody listens."""


def build_etcd(say: Say = quiet, heartbeat_seconds: float = 30.0) -> Path:
    return binaries.build(["etcd"], say=say, heartbeat_seconds=heartbeat_seconds)["etcd"]


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_every_tool_is_pinned_by_the_go_module_it_is_built_from(tool):
    pin = "main.go" if tool.own_version else "go.mod"
    assert tool.version in (tool.module_directory / pin).read_text()
    assert tool.version in tool.path.parent.name


def test_every_tool_has_a_use():
    assert set(TOOLS) == {name for names in binaries.USES.values() for name in names}


def test_kubernetes_learns_its_version_from_the_linker():
    tool = TOOLS["kube-apiserver"]
    assert f"-X k8s.io/component-base/version.gitVersion={tool.version}" in tool.ldflags


@pytest.mark.parametrize(
    "go_mod",
    [
        pytest.param("module x\n\nrequire example.org/a v1.2.3\n", id="on a line of its own"),
        pytest.param("require (\n\texample.org/a v1.2.3 // indirect\n)\n", id="in a block"),
        pytest.param("require (\n\texample.org/a/b v9.0.0\n\texample.org/a v1.2.3\n)", id="near"),
    ],
)
def test_the_required_version_is_found(go_mod):
    assert binaries.required_version(go_mod, "example.org/a") == "v1.2.3"


def test_a_module_that_is_not_required_has_no_version():
    with pytest.raises(ValueError, match=r"does not require example\.org/b"):
        binaries.required_version("require example.org/a v1.2.3\n", "example.org/b")


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ("Kubernetes v1.36.4\n", "1.36.4"),
        ("etcd Version: 3.6.5\nGit SHA: unknown\nGo Version: go1.26.8\n", "3.6.5"),
        ("Kubernetes v1.37.0-alpha.1\n", "1.37.0-alpha.1"),
        ("no idea\n", None),
    ],
)
def test_the_reported_version_is_the_first_one_named(output, version):
    assert binaries.reported_version(output) == version


def test_a_built_program_needs_no_compiler_any_more(fake_go):
    path = build_etcd()
    fake_go(version="exit 1", build="exit 1")
    assert build_etcd() == path == ETCD.path
    assert path.exists()


def test_a_program_of_another_version_is_not_accepted(fake_go):
    fake_go(reports="v0.0.0")
    with pytest.raises(BuildFailed, match=r"does not report version 3\.6\.5: 'v0\.0\.0'"):
        build_etcd()
    assert not ETCD.path.exists()


def test_a_program_that_cannot_tell_its_version_is_asked_what_it_was_compiled_from(fake_go):
    name = "scheduler-plugins-controller"
    dependency = f"printf '\\tdep\\t%s\\t%s\\n' {TOOLS[name].requirement}"
    fake_go(version=f"echo go1.99.0; {dependency} {TOOLS[name].version}")
    assert binaries.build([name], say=quiet)[name].exists()


def test_a_failed_build_shows_what_the_compiler_said_last(fake_go):
    fake_go(build="seq 100; echo undefined: x; exit 2")
    with pytest.raises(BuildFailed, match=r"(?s)exited with 2.* 99\n .*undefined: x") as failure:
        build_etcd()
    assert " 50\n" not in str(failure.value)


def test_an_interrupted_build_is_not_taken_for_a_finished_one(fake_go):
    fake_go(build='echo half > "$2"; exec sleep 1000')

    def press_control_c(line):
        if "still building" in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_etcd(press_control_c, heartbeat_seconds=0.01)
    assert not ETCD.path.exists()
    fake_go()
    assert build_etcd().exists()


def test_a_long_build_shows_signs_of_life(fake_go, home):
    fake_go(build=f"until [ -e {home}/seen ]; do sleep 0.01; done")
    lines = []

    def listen(line):
        lines.append(line)
        if "still building" in line:
            (home / "seen").touch()

    build_etcd(listen, heartbeat_seconds=0.01)
    assert lines[0] == "etcd v3.6.5: building (usually a minute on 2 cores, once)"
    assert "still building" in lines[1]
    assert lines[-1].startswith("etcd v3.6.5: built in ")


def test_a_second_build_waits_for_the_first(fake_go, home):
    fake_go(build=f"touch {home}/begun; until [ -e {home}/go-on ]; do sleep 0.01; done")
    begun, second_says = threading.Event(), []

    def first_says(line):
        if "still building" in line and (home / "begun").exists():
            begun.set()

    def listen(line):
        second_says.append(line)
        (home / "go-on").touch()

    with ThreadPoolExecutor() as pool:
        first = pool.submit(build_etcd, first_says, 0.01)
        assert begun.wait(30)
        second = pool.submit(build_etcd, listen)
        assert first.result(30) == second.result(30)
    assert second_says == ["etcd: waiting for another process that builds it"]
    assert (home / "compilations").read_text() == "compiled\n"


def test_without_go_nothing_can_be_built(home, monkeypatch):
    monkeypatch.setenv("PATH", str(home))
    with pytest.raises(CannotBuild, match=r"`go` is not on the PATH\. Install Go 1\.\d+"):
        build_etcd()


@pytest.mark.parametrize(
    ("version", "complaint"),
    [
        pytest.param("echo go version go1.4.2 linux/amd64", "needs Go 1", id="it says so"),
        pytest.param("echo go.mod requires go 99 >&2; exit 1", "requires go 99", id="it refuses"),
        pytest.param("echo who are you", "who are you", id="it talks nonsense"),
    ],
)
def test_an_old_go_cannot_build(fake_go, version, complaint):
    fake_go(version=version)
    with pytest.raises(CannotBuild, match=complaint):
        build_etcd()


def test_ready_made_programs_are_preferred(home, monkeypatch):
    program = home / "etcd"
    program.touch(mode=0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(home))
    assert binaries.provide(["etcd"]) == {"etcd": program}


def test_what_is_no_part_of_kubernetes_need_not_be_ready_made(fake_go, home, monkeypatch):
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(home / "assets"))
    fake_go(reports="v1.0.0")
    assert binaries.provide(["pause"]) == {"pause": TOOLS["pause"].path}


def test_what_is_missing_among_ready_made_programs_is_named(home, monkeypatch):
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(home))
    with pytest.raises(CannotBuild, match=f"{home}, which has no kube-controller-manager"):
        binaries.provide(["kube-controller-manager"])


def test_only_builds_that_no_pin_asks_for_are_outdated(fake_go):
    build_etcd()
    old = binaries.cache_directory() / "etcd-v3.0.0-0123456789ab"
    old.mkdir()
    assert binaries.outdated() == [old]
