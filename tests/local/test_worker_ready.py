"""Whether the sshd of a worker listens, asked by the script of its startup probe."""

import socket
import subprocess
from contextlib import contextmanager

import pytest

from mpi_operator.build.scripts import WORKER_READY
from tests.local.scripts import SHELLS, Scripts, missing


@pytest.fixture(params=SHELLS)
def scripts(request, tmp_path):
    if missing(request.param):
        pytest.skip(f"needs {request.param}")
    return Scripts(tmp_path, request.param)


@contextmanager
def listening(family=socket.AF_INET):
    """A port with a listener."""
    host = "::1" if family == socket.AF_INET6 else "127.0.0.1"
    with socket.create_server((host, 0), family=family) as server:
        yield server.getsockname()[1]


def is_ready(scripts, *arguments):
    ended = subprocess.run(scripts.command(WORKER_READY, *arguments), timeout=30)
    return ended.returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["-De", "-p", "{port}"], id="-p"),
        pytest.param(["-De", "-p{port}"], id="-p in one word"),
        pytest.param(["-D", "-o", "Port={port}"], id="-o"),
        pytest.param(["-D", "-oPort {port}"], id="-o in one word"),
        pytest.param(["-D", "-o", "ListenAddress=0.0.0.0:{port}"], id="an address"),
        pytest.param(["-Def", "{file}"], id="a file of its own"),
        pytest.param(["-De", "-oStrictModes=no", "-p", "{port}"], id="after an option in one word"),
        pytest.param(["-De", "-p", "{port}", "-oUsePAM=no"], id="before an option in one word"),
        pytest.param(["-De"], id="the usual file"),
    ],
)
def test_a_worker_is_ready_when_its_port_listens(scripts, arguments):
    with listening() as port:
        file = scripts.configuration / ("mine" if "{file}" in arguments else "sshd_config")
        file.write_text(f"# Port 1\n  port\t{port}\nMatch user x\nPort 2\n")
        assert is_ready(scripts, *(word.format(port=port, file=file) for word in arguments))


def test_a_part_of_the_usual_file_counts_too(scripts):
    with listening() as port:
        (scripts.configuration / "sshd_config.d" / "a.conf").write_text(f"Port {port}")
        assert is_ready(scripts, "-De")


def test_the_newer_protocol_counts_too(scripts):
    if not socket.has_ipv6:
        pytest.skip("needs IPv6")
    with listening(socket.AF_INET6) as port:
        assert is_ready(scripts, "-p", str(port))


def test_a_worker_without_a_listener_on_its_port_is_not_ready(scripts):
    with listening() as port:
        pass
    assert not is_ready(scripts, "-De", "-p", str(port))


def test_every_worker_counts_as_ready_after_a_minute(scripts):
    with listening() as port:
        pass
    scripts.has_run_for(seconds=61)
    assert is_ready(scripts, "-De", "-p", str(port))
