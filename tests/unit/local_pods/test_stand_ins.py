"""What stands in for programs that a machine without root does not have."""

import pytest

from mpi_operator.local.kubelet.container_env import Tools, outfitted
from mpi_operator.local.kubelet.sshd import is_sshd, without_sshd


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


def test_tools_come_before_the_machine(tmp_path):
    tools = Tools([tmp_path], {"LD_LIBRARY_PATH": "/mpi/lib"})
    env = outfitted({"PATH": "/bin", "LD_LIBRARY_PATH": "/own"}, {"A": "1"}, tools, {})
    assert env["PATH"] == f"/.pod/bin:{tmp_path}:/bin"
    assert env["LD_LIBRARY_PATH"] == "/mpi/lib:/own"
    assert env["A"] == "1"


def test_what_a_container_declares_wins_but_for_what_it_could_not_work_without():
    own = {"LANG": "de", "HYDRA_LAUNCHER": "rsh", "TMPDIR": "/mine"}
    env = outfitted({"LANG": "en", "PATH": "/bin"}, own, Tools(), {})
    assert (env["LANG"], env["TMPDIR"]) == ("de", "/mine")
    assert env["HYDRA_LAUNCHER"] == "ssh"


def test_ranks_meet_on_loopback_unless_their_container_says_where():
    assert outfitted({"FI_TCP_IFACE": "eth0"}, {}, Tools(), {})["FI_TCP_IFACE"] == "lo"
    own = {"FI_TCP_IFACE": "eth0"}
    assert outfitted({}, own, Tools(), {})["FI_TCP_IFACE"] == "eth0"
