"""Programs that stand in for those of an image: ssh, sshd and Open MPI's mpirun."""

import os
import subprocess
from pathlib import Path

import pytest

from mpi_operator.local.kubelet.pod_runner import write_programs
from mpi_operator.local.remote_exec.mpirun_wrapper import (
    LAUNCHER_ONLY,
    exported,
    hosts_named,
    hosts_of,
    split_hosts,
)
from mpi_operator.local.remote_exec.stand_ins import (
    host_of_rank,
    is_open_mpi_launcher,
    is_sshd,
    mpirun_programs,
    rank_environment,
    with_mpirun,
    without_sshd,
)
from mpi_operator.local.sandbox.path_translation import Translation
from mpi_operator.local.sandbox.protocol import Mount
from mpi_operator.mpi_variables import OPEN_MPI


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["/usr/sbin/sshd", "-De"], True),
        (["sshd", "-D", "-p", "2222"], True),
        (["python", "sshd"], False),
        ([], False),
    ],
)
def test_an_sshd_is_recognised(argv, expected):
    assert is_sshd(argv) == expected


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("/usr/sbin/sshd -De", "WAIT -De"),
        ("mkdir -p /run/sshd && exec /usr/sbin/sshd -De", "mkdir -p /run/sshd && exec WAIT -De"),
        ("cp /etc/ssh/sshd_config .; sshd -D", "cp /etc/ssh/sshd_config .; WAIT -D"),
        ("python train.py", "python train.py"),
    ],
)
def test_scripts_call_the_stand_in(script, expected):
    assert without_sshd(["/bin/bash", "-c", script], "WAIT") == ["/bin/bash", "-c", expected]


# --- Open MPI without namespaces: one daemon for all pods

HOSTFILE = "# hosts\nw-0.pi slots=2\nw-1.pi\n\nw-2.pi slots=1 max-slots=4\n"


def test_ranks_fill_hosts_in_order():
    assert hosts_of(HOSTFILE) == ["w-0.pi", "w-0.pi", "w-1.pi", "w-2.pi"]
    assert hosts_named("w-0,w-1:2") == ["w-0", "w-1", "w-1"]


@pytest.mark.parametrize(
    ("line", "given", "rest"),
    [
        pytest.param("-n 2 a", {}, "-n 2 a", id="nothing about hosts"),
        pytest.param("--hostfile h -n 2 a", {"hostfile": "h"}, "-n 2 a", id="a hostfile"),
        pytest.param("-n 2 -machinefile h a", {"hostfile": "h"}, "-n 2 a", id="its old name"),
        pytest.param("--hostfile=h a", {"hostfile": "h"}, "a", id="with an equals sign"),
        pytest.param("-np 2 -H b:1 a", {"host": "b:1"}, "-np 2 a", id="hosts"),
        pytest.param(
            "--allow-run-as-root -bind-to none -mca pml ob1 -x A=1 -H b a -n 1",
            {"host": "b"},
            "--allow-run-as-root -bind-to none -mca pml ob1 -x A=1 a -n 1",
            id="among others, as horovodrun writes it",
        ),
        pytest.param(
            "-x PRTE_MCA_prte_default_hostfile -x A a",
            {},
            "-x A a",
            id="what is not to be passed on",
        ),
        pytest.param("-n 2 a --hostfile h", {}, "-n 2 a --hostfile h", id="those of the program"),
        pytest.param("--hostfile", {}, "", id="nothing that makes sense"),
    ],
)
def test_what_a_command_line_says_about_hosts(line, given, rest):
    assert split_hosts(line.split(), OPEN_MPI.hostfile) == (given, rest.split())


@pytest.mark.parametrize(
    ("variables", "host"),
    [
        ({"MPI_OPERATOR_HOSTS": "a,a,b", "PMIX_RANK": "2"}, "b"),
        ({"MPI_OPERATOR_HOSTS": "a,a,b", "OMPI_COMM_WORLD_RANK": "0"}, "a"),
        ({"MPI_OPERATOR_HOSTS": "a,b", "PMIX_RANK": "3"}, "b"),
        ({"MPI_OPERATOR_HOSTS": "a,b"}, ""),
        ({"PMIX_RANK": "1"}, ""),
    ],
    ids=["Open MPI 5", "Open MPI 4", "more ranks than slots", "no rank", "no hosts"],
)
def test_where_a_rank_belongs(variables, host):
    assert host_of_rank(variables) == host


def test_only_launchers_of_open_mpi_need_it():
    assert is_open_mpi_launcher({"PRTE_MCA_prte_default_hostfile": "/etc/mpi/hostfile"})
    assert not is_open_mpi_launcher({"HYDRA_HOST_FILE": "/etc/mpi/hostfile"})


@pytest.mark.parametrize(
    ("argv", "words", "path"),
    [
        (["mpirun", "a"], ["mpirun", "a"], "/ours:/bin"),
        (["/opt/bin/mpirun", "a"], ["/ours/mpirun", "a"], "/ours:/opt/bin:/bin"),
        (["/opt/bin/other"], ["/opt/bin/other"], "/ours:/bin"),
        ([], [], "/ours:/bin"),
    ],
)
def test_ours_is_found_before_the_real_one(argv, words, path):
    assert with_mpirun(argv, {"PATH": "/bin"}, "/ours") == (words, {"PATH": path})


# --- the program


@pytest.fixture
def mpirun(tmp_path):
    """Calls our mpirun; the real one prints its arguments."""
    real, ours = tmp_path / "real", tmp_path / "ours"
    says = (
        'echo "$*"; echo "$MPI_OPERATOR_HOSTS $PRTE_MCA_odls_base_exec_agent"; env | grep -c _file='
    )
    write_programs(real, {"mpirun": f"#!/bin/sh\n{says}\n"})
    write_programs(ours, mpirun_programs("/pod", "launcher"))
    (tmp_path / "hostfile").write_text(HOSTFILE)

    def call(*words: str, path: str = f"{ours}:{real}:{os.defpath}") -> tuple[list[str], str]:
        variables = {"PATH": path, "PRTE_MCA_prte_default_hostfile": str(tmp_path / "hostfile")}
        done = subprocess.run(
            [ours / "mpirun", *words],
            env=variables,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout.splitlines(), done.stderr

    return call


@pytest.mark.parametrize(
    ("words", "slots", "hosts"),
    [
        pytest.param([], 4, "w-0.pi,w-0.pi,w-1.pi,w-2.pi", id="the default hostfile"),
        pytest.param(["--host", "b,c"], 2, "b,c", id="hosts"),
        pytest.param(["--hostfile", "other"], 3, "d,d,d", id="another hostfile"),
    ],
)
def test_mpirun_gets_one_host_and_its_ranks_get_all(mpirun, tmp_path, words, slots, hosts):
    (tmp_path / "other").write_text("d slots=3\n")
    printed, _ = mpirun(*words, "-n", "2", "a")
    assert printed == [
        f"--host localhost:{slots} -n 2 a",
        f"{hosts} /pod/bin/mpi-operator-rank",
        "0",
    ]


def test_ranks_of_the_launcher_itself_need_no_agent(mpirun, tmp_path):
    (tmp_path / "hostfile").write_text("launcher.pi.lab.svc slots=2\n")
    assert mpirun("a")[0] == ["--host localhost:2 a", " ", "0"]


def test_a_hostfile_that_is_not_there_is_named(mpirun):
    printed, complaint = mpirun("--hostfile", "nowhere", "a")
    assert printed == []
    assert "No such file or directory: 'nowhere'" in complaint


def test_a_missing_mpirun_is_reported(mpirun, tmp_path):
    _, complaint = mpirun("a", path=str(Path(tmp_path, "ours")))
    assert complaint.startswith("mpirun: ")
    assert "not found in PATH" in complaint


def test_a_rank_has_the_variables_of_its_worker_and_what_mpirun_adds():
    given = {
        "OWNER": "launcher",
        "EXPORTED": "/run/launcher/volumes/shared/x",
        "OMPI_MCA_x": "/run/launcher/volumes/shared/x",
        "PMIX_RANK": "0",
        "ADDED": "yes",
        LAUNCHER_ONLY: "OWNER,OMPI_MCA_x",
    }
    own = {"OWNER": "worker", "ONLY": "here"}
    translation = Translation([Mount(Path("/shared"), "/run/launcher/volumes/shared")])
    assert rank_environment(given, own, translation) == {
        "OWNER": "worker",
        "ONLY": "here",
        "EXPORTED": "/shared/x",
        "OMPI_MCA_x": "/run/launcher/volumes/shared/x",
        "PMIX_RANK": "0",
        "ADDED": "yes",
    }


def test_exported_variables_are_found_before_the_program():
    words = ["-n", "2", "-x", "A", "-x", "B=1", "--mca", "a", "b", "python", "-x", "C"]
    assert exported(words) == {"A", "B"}
