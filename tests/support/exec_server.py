"""An API server that knows nothing but exec: it runs commands on this machine.

A test says what is in the way: a refusal before the session, or an end of the link in it.
"""

import asyncio
import json
import os
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import WSMsgType, web

from devcluster import pki

TOKEN = "a-token"
NAMESPACE = "lab"
_STDIN, _STDOUT, _STDERR, _STATUS, _CLOSE = 0, 1, 2, 3, 255


@dataclass(frozen=True)
class Refusal:
    """What the server answers instead of a session."""

    code: int
    message: str
    reason: str = ""
    in_session: bool = False  # on the status channel, as it does if the kubelet refuses


@dataclass(frozen=True)
class Exec:
    """One request."""

    pod: str
    container: str
    command: tuple[str, ...]
    has_stdin: bool
    authorization: str


class ExecServer:
    """Serves until it is stopped, on a thread of its own."""

    def __init__(self, directory: Path, protocol: str = "v5.channel.k8s.io") -> None:
        self.requests: list[Exec] = []
        self.refuse: Callable[[Exec], Refusal | None] = lambda request: None
        self.shell = ["/bin/sh"]  # that of the image
        self.silent = threading.Event()  # from now on nothing arrives
        self._protocol = protocol
        self._links: list[web.WebSocketResponse] = []
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._account = directory / "account"
        self._account.mkdir()
        authority = pki.create_authority(directory / "ca")
        self._pair = authority.issue_server(directory / "server", ["127.0.0.1"])
        (self._account / "ca.crt").write_bytes(authority.files.certificate.read_bytes())
        (self._account / "token").write_text(f"{TOKEN}\n")
        (self._account / "namespace").write_text(NAMESPACE)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._ready.wait(10)

    @property
    def environment(self) -> dict[str, str]:
        """What makes a client find this server."""
        return {
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(self._port),
            "MPI_OPERATOR_SERVICE_ACCOUNT": str(self._account),
        }

    def cut(self) -> None:
        """End all links, as an API server does that is stopped."""

        def abort() -> None:
            for link in self._links:
                transport = link._req.transport if link._req else None
                if transport:
                    transport.abort()

        self._loop.call_soon_threadsafe(abort)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._start())
        self._loop.run_forever()
        self._loop.run_until_complete(self._runner.cleanup())
        pending = asyncio.all_tasks(self._loop)
        for task in pending:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
        self._loop.close()

    async def _start(self) -> None:
        application = web.Application()
        path = "/api/v1/namespaces/{namespace}/pods/{pod}/exec"
        application.router.add_get(path, self._serve)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self._pair.certificate, self._pair.key)
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        self._port = self._runner.addresses[0][1]
        self._ready.set()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        wanted = Exec(
            request.match_info["pod"],
            request.query.get("container", ""),
            tuple(request.query.getall("command")),
            request.query.get("stdin") == "true",
            request.headers.get("Authorization", ""),
        )
        self.requests.append(wanted)
        refusal = self.refuse(wanted)
        if refusal and not refusal.in_session:
            return web.json_response(_status(refusal), status=refusal.code)
        link = web.WebSocketResponse(protocols=[self._protocol])
        await link.prepare(request)
        self._links.append(link)
        if refusal:
            await self._send(link, _STATUS, json.dumps(_status(refusal)).encode())
        else:
            await self._run_command(link, wanted)
        return link

    async def _run_command(self, link: web.WebSocketResponse, wanted: Exec) -> None:
        pipe = asyncio.subprocess.PIPE
        is_shell = wanted.command[0] == "/bin/sh"
        command = [*self.shell, *wanted.command[1:]] if is_shell else wanted.command
        process = await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, stderr=pipe, env=dict(os.environ)
        )
        assert process.stdin
        assert process.stdout
        assert process.stderr
        inputs = asyncio.ensure_future(_forward_input(link, process.stdin))
        try:
            await asyncio.gather(
                self._forward(link, _STDOUT, process.stdout),
                self._forward(link, _STDERR, process.stderr),
            )
            code = await process.wait()
        finally:
            inputs.cancel()
            await _end(process)
        if not self.silent.is_set():
            await self._send(link, _STATUS, json.dumps(_ended(code)).encode())
        await link.close()

    async def _forward(
        self, link: web.WebSocketResponse, channel: int, source: asyncio.StreamReader
    ) -> None:
        while data := await source.read(4096):
            await self._send(link, channel, data)

    async def _send(self, link: web.WebSocketResponse, channel: int, data: bytes) -> None:
        with suppress(ConnectionError, RuntimeError):
            if not self.silent.is_set():
                await link.send_bytes(bytes([channel]) + data)


async def _forward_input(link: web.WebSocketResponse, target: asyncio.StreamWriter) -> None:
    async for message in link:
        if message.type is not WSMsgType.BINARY:
            continue
        if message.data[0] == _STDIN:
            target.write(message.data[1:])
        elif message.data[0] == _CLOSE:
            target.close()


async def _end(process: asyncio.subprocess.Process) -> None:
    """Leave neither a process nor an open pipe behind when the server is stopped.

    Pipes first: what the command has started may keep them open.
    """
    process._transport.close()  # type: ignore[attr-defined]
    await process.wait()


def _status(refusal: Refusal) -> dict[str, Any]:
    return {"status": "Failure", "message": refusal.message, "reason": refusal.reason}


def _ended(code: int) -> dict[str, Any]:
    if code == 0:
        return {"status": "Success"}
    number = code if code > 0 else 128 - code
    cause = {"reason": "ExitCode", "message": str(number)}
    return {
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": f"command terminated with non-zero exit code: {number}",
        "details": {"causes": [cause]},
    }
