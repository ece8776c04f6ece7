import io
import json

import pytest
import yaml
from click.testing import CliRunner

from mpi_operator.cli.image_check import image_files
from mpi_operator.cli.image_check.image_contract import State, findings
from mpi_operator.cli.main import mpijob
from tests.support.image_archives import docker_archive, layer, oci_archive, usable, write_tree

NET_BIND = bytes.fromhex("0100000200040000000000000000000000000000")  # cap_net_bind_service=ep


def image_of(tree, capabilities=None):
    return image_files.of_archive(io.BytesIO(docker_archive(layer(tree, capabilities))))


def finding(rule, tree, capabilities=None):
    [found] = [each for each in findings(image_of(tree, capabilities)) if each.rule == rule]
    return found


def without(*paths):
    return {path: content for path, content in usable().items() if path not in paths}


def test_an_image_with_everything_passes_every_rule():
    assert {found.rule: found.state for found in findings(image_of(usable()))} == {
        found.rule: State.OK for found in findings(image_of(usable()))
    }


SSHD_CONFIG = "Port 2222\nStrictModes no\nHostKey /root/.ssh/id_rsa\n"


@pytest.mark.parametrize(
    ("rule", "state", "tree"),
    [
        pytest.param("shell", "missing", without("usr/bin/sh"), id="no shell"),
        pytest.param("ssh server", "missing", without("usr/sbin/sshd"), id="no sshd"),
        pytest.param(
            "ssh server", "missing", usable({"usr/sbin/sshd": "text"}), id="sshd is no program"
        ),
        pytest.param("ssh client", "missing", without("usr/bin/ssh"), id="no ssh"),
        pytest.param("mpirun", "missing", without("usr/bin/mpirun"), id="no mpirun"),
        pytest.param(
            "unknown hosts", "missing", usable({"etc/ssh/ssh_config": "Port 2222"}), id="ssh asks"
        ),
        pytest.param(
            "unknown hosts",
            "missing",
            usable({"etc/ssh/ssh_config": "Host example\n  StrictHostKeyChecking no\n"}),
            id="ssh asks for all hosts but one",
        ),
        pytest.param(
            "known hosts",
            "advice",
            usable({"etc/ssh/ssh_config": "Port 2222\nStrictHostKeyChecking no\n"}),
            id="ssh records hosts",
        ),
        pytest.param(
            "port",
            "missing",
            usable({"etc/ssh/sshd_config": "Port 2022\nStrictModes no\n"}),
            id="two ports",
        ),
        pytest.param(
            "port",
            "advice",
            usable({"etc/ssh/sshd_config": "", "etc/ssh/ssh_config": ""}),
            id="the node's port",
        ),
        pytest.param(
            "key files", "missing", usable({"etc/ssh/sshd_config": "Port 2222"}), id="strict modes"
        ),
        pytest.param("privilege separation", "missing", without("run/sshd"), id="no /run/sshd"),
        pytest.param(
            "host key", "missing", usable({"etc/ssh/sshd_config": "Port 2222"}), id="no host key"
        ),
        pytest.param(
            "host key",
            "advice",
            usable({"etc/ssh/ssh_host_ed25519_key": "secret"}),
            id="a public host key",
        ),
        pytest.param(
            "host key",
            "advice",
            usable({"etc/ssh/sshd_config": "HostKey /opt/key\n", "opt/key": "secret"}),
            id="a public host key, elsewhere",
        ),
        pytest.param(
            "host key",
            "advice",
            usable({"etc/ssh/sshd_config": "HostKey /mounted/key\n"}),
            id="a host key that is mounted",
        ),
        pytest.param(
            "user", "advice", usable({"etc/passwd": "root:x:0:0::/root:/bin/sh\n"}), id="only root"
        ),
        pytest.param(
            "any uid", "advice", usable({"etc/nsswitch.conf": "passwd: files\n"}), id="only names"
        ),
        pytest.param(
            "PAM", "advice", usable({"etc/ssh/sshd_config": f"{SSHD_CONFIG}UsePAM yes\n"}), id="PAM"
        ),
    ],
)
def test_what_an_image_lacks_is_reported_with_a_remedy(rule, state, tree):
    found = finding(rule, tree)
    assert found.state == state
    assert found.remedy


def test_an_entry_point_may_make_the_host_key():
    tree = usable({"etc/ssh/sshd_config": "Port 2222"})
    settings = {"Entrypoint": ["/entrypoint.sh"]}
    archive = docker_archive(layer(tree), settings=settings)
    [found] = [
        each
        for each in findings(image_files.of_archive(io.BytesIO(archive)))
        if each.rule == "host key"
    ]
    assert found.state is State.ADVICE


def test_a_file_capability_is_reported():
    found = finding("capabilities", usable(), {"usr/sbin/sshd": NET_BIND})
    assert found.state is State.ADVICE
    assert "file capability" in found.detail


def test_included_files_are_read():
    tree = usable(
        {
            "etc/ssh/sshd_config": "Include /etc/ssh/sshd_config.d/*.conf\nStrictModes yes\n",
            "etc/ssh/sshd_config.d/mpi.conf": f"{SSHD_CONFIG}# the first counts\n",
        }
    )
    assert finding("key files", tree).state is State.OK
    assert finding("port", tree).detail == "2222"


@pytest.mark.parametrize(
    ("tree", "mpi"),
    [
        pytest.param(usable(), "Open MPI 5.0.7 (mpiImplementation: OpenMPI)", id="Debian"),
        pytest.param(
            usable({"var/lib/dpkg/status": "", "usr/lib/libmpi.so.40.30.4": b""}),
            "Open MPI 4.1 (mpiImplementation: OpenMPI)",
            id="Open MPI from source",
        ),
        pytest.param(
            without("usr/bin/mpirun")
            | {
                "usr/local/bin/mpirun": "-> /opt/intel/oneapi/mpi/2021.18.1/bin/mpirun",
                "opt/intel/oneapi/mpi/2021.18.1/bin/mpirun": b"",
                "opt/intel/oneapi/mpi/2021.18.1/bin/hydra_pmi_proxy": b"",
                "opt/intel/oneapi/mpi/2021.18.1/bin/impi_info": b"",
            },
            "Intel MPI 2021.18.1 (mpiImplementation: Intel)",
            id="Intel MPI, which has the programs of MPICH",
        ),
        pytest.param(
            without("usr/bin/mpirun", "usr/bin/mpirun.openmpi")
            | {
                "usr/bin/mpirun": b"",
                "usr/bin/hydra_pmi_proxy": b"",
                "var/lib/dpkg/status": "Package: mpich\nVersion: 4.3.0+really4.2.1-1\n\n",
            },
            "MPICH 4.2.1 (mpiImplementation: MPICH)",
            id="MPICH",
        ),
    ],
)
def test_the_mpi_is_identified(tree, mpi):
    assert finding("mpirun", tree).detail.endswith(mpi)


def test_an_mpirun_outside_the_path_is_reported():
    tree = without("usr/bin/mpirun") | {"opt/mpi/bin/mpirun": b""}
    assert finding("mpirun", tree).remedy == "ENV PATH=/opt/mpi/bin:$PATH"


def test_upper_layers_hide_and_replace_lower_ones():
    upper = {
        "usr/bin/.wh.ssh": "",
        "etc/ssh/.wh..wh..opq": "",
        "etc/ssh/sshd_config": "Port 2022\n",
    }
    image = image_files.of_archive(io.BytesIO(docker_archive(layer(usable()), layer(upper))))
    assert image.program("ssh") is None
    assert image.text("/etc/ssh/sshd_config") == "Port 2022\n"
    assert image.find("/etc/ssh/ssh_config") is None
    assert image.program("mpirun") == "/usr/bin/mpirun"


def test_circular_links_lead_nowhere():
    image = image_of({"a": "-> b", "b": "-> a"})
    assert image.find("/a") is None


def as_docker(tmp_path, tree):
    return [_file(tmp_path, docker_archive(layer(tree)))], None


def as_oci(tmp_path, tree):
    return [_file(tmp_path, oci_archive(layer(tree)))], None


def as_input(tmp_path, tree):
    return ["-"], docker_archive(layer(tree))


def as_directory(tmp_path, tree):
    return [str(write_tree(tmp_path / "rootfs", tree))], None


def _file(directory, content):
    path = directory / "image.tar"
    path.write_bytes(content)
    return str(path)


FORMS = [as_docker, as_oci, as_input, as_directory]


@pytest.mark.parametrize("form", FORMS)
def test_a_usable_image_exits_with_0_in_any_form(form, tmp_path):
    arguments, data = form(tmp_path, usable())
    result = CliRunner().invoke(mpijob, ["image", "check", *arguments], input=data)
    assert result.exit_code == 0, result.output
    assert "Dockerfile" not in result.output


@pytest.mark.parametrize("form", FORMS)
def test_an_unusable_image_exits_with_1_and_a_remedy(form, tmp_path):
    arguments, data = form(tmp_path, without("usr/sbin/sshd"))
    result = CliRunner().invoke(mpijob, ["image", "check", *arguments], input=data)
    assert result.exit_code == 1
    assert "apt-get install -y openssh-server" in result.output


NO_SSH = without("usr/sbin/sshd", "usr/bin/ssh", "etc/ssh/ssh_config", "etc/ssh/sshd_config")


def checked(tmp_path, tree, *options):
    arguments, _ = as_docker(tmp_path, tree)
    return CliRunner().invoke(mpijob, ["image", "check", *arguments, *options])


def test_by_exec_an_image_needs_nothing_that_is_about_ssh(tmp_path):
    assert checked(tmp_path, NO_SSH).exit_code == 1
    result = checked(tmp_path, NO_SSH, "--transport", "exec")
    assert result.exit_code == 0, result.output
    assert "ssh" not in result.output


@pytest.mark.parametrize("program", ["sh", "sleep", "mpirun"])
def test_by_exec_a_missing_program_is_reported_with_a_remedy(tmp_path, program):
    result = checked(tmp_path, without(f"usr/bin/{program}"), "--transport", "exec")
    assert result.exit_code == 1
    assert "RUN apt-get install" in result.output


@pytest.mark.parametrize(
    ("tree", "is_hinted"),
    [
        pytest.param(NO_SSH, True, id="no ssh"),
        pytest.param(without("usr/sbin/sshd", "usr/bin/sleep"), False, id="neither ssh nor sleep"),
        pytest.param(usable(), False, id="all"),
    ],
)
def test_an_image_without_ssh_that_exec_can_use_is_said_to_be_one(tmp_path, tree, is_hinted):
    assert ("--transport exec" in checked(tmp_path, tree).output) is is_hinted


@pytest.mark.parametrize(("output", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_programs_get_the_findings_as_data(output, read, tmp_path):
    arguments, _ = as_docker(tmp_path, without("usr/sbin/sshd"))
    result = CliRunner().invoke(mpijob, ["image", "check", *arguments, "-o", output])
    document = read(result.stdout)
    assert not document["usable"]
    assert [each["rule"] for each in document["findings"] if each["state"] == "missing"] == [
        "ssh server"
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"no archive at all", "not an image archive", id="no archive"),
        pytest.param(layer(usable()), "manifest.json", id="the files of an image, not an image"),
    ],
)
def test_an_unreadable_image_exits_with_2(content, message, tmp_path):
    result = CliRunner().invoke(mpijob, ["image", "check", _file(tmp_path, content)])
    assert result.exit_code == 2
    assert message in result.output


def test_the_name_of_an_image_is_answered_with_the_command_that_saves_it():
    result = CliRunner().invoke(mpijob, ["image", "check", "my/image:1"])
    assert result.exit_code == 2
    assert "docker save my/image:1 | mpijob image check -" in result.output


def test_settings_without_a_path_have_the_default():
    archive = docker_archive(layer(usable()), settings={})
    assert image_files.of_archive(io.BytesIO(archive)).program("mpirun") == "/usr/bin/mpirun"
