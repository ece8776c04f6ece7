"""The listening socket of test servers leaves no connection open, whatever its clients do."""

import asyncio
import gc
import re
import socket
import ssl
import subprocess
import sys
import warnings
from pathlib import Path

from aiohttp import web

from tests.support.listener import Listener, listening
from tests.unit.kube.config.pki import authority

ROOT = Path(__file__).parents[2]


def _tls(directory: Path) -> ssl.SSLContext:
    pair = authority().sign("server", "localhost")
    (directory / "server.pem").write_text(pair.certificate + pair.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(directory / "server.pem")
    return context


def _ask(port: int) -> ssl.SSLSocket:
    """Send a request over TLS and keep the connection; it does not answer a close."""
    trust = ssl.create_default_context(cadata=authority().pem)
    trust.verify_flags &= ~ssl.VERIFY_X509_STRICT
    plain = socket.create_connection(("127.0.0.1", port))
    client = trust.wrap_socket(plain, server_hostname="localhost")
    client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert client.recv(1000).startswith(b"HTTP/1.1 200")
    return client


def test_a_tls_client_that_does_not_hang_up_leaves_nothing_open(tmp_path: Path) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="hello")

    async def serve() -> ssl.SSLSocket:
        app = web.Application()
        app.router.add_get("/", answer)
        async with listening(app, _tls(tmp_path)) as port:
            return await asyncio.to_thread(_ask, port)

    with asyncio.run(serve()), warnings.catch_warnings(record=True) as leaks:
        warnings.simplefilter("always")
        gc.collect()
    assert [str(leak.message) for leak in leaks] == []


async def test_a_connection_that_is_still_being_set_up_ends_too(tmp_path: Path) -> None:
    listener = Listener()
    async with await asyncio.start_server(
        lambda _reader, writer: writer.close(), sock=listener, ssl=_tls(tmp_path)
    ):
        with socket.create_connection(("127.0.0.1", listener.port)) as client:
            await asyncio.sleep(0.05)  # accepted, and the handshake never comes
            await listener.end_connections()
            client.settimeout(5)
            assert client.recv(1) == b""


LEAK = """
import asyncio

async def test_guilty():
    server = await asyncio.start_server(print, "127.0.0.1", 0)
    cycle = [server]
    cycle.append(cycle)

def test_innocent():
    pass
"""


def test_a_connection_left_open_is_an_error_of_the_test_that_left_it(tmp_path: Path) -> None:
    (tmp_path / "test_leak.py").write_text(LEAK)
    options = ["-p", "tests.conftest", "-p", "no:randomly", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-c", "pyproject.toml", *options, str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert re.findall(r"^ERROR .*::(\w+) ", run.stdout, re.MULTILINE) == ["test_guilty"], run.stdout
