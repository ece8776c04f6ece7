"""A real sshd on loopback, as the user that runs the tests, with keys of its own."""

import os
import shutil
import signal
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

from devcluster.ports import free_port
from tests.support.waiting import block_until

SSHD = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")

_CONFIGURATION = """\
ListenAddress 127.0.0.1
HostKey {directory}/host
AuthorizedKeysFile {directory}/key.pub
PidFile none
StrictModes no
UsePAM no
"""
_CLIENT = """\
Host *
  HostName {address}
  Port {port}
  IdentityFile {directory}/key
  IdentitiesOnly yes
  KexAlgorithms curve25519-sha256
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
"""


class Sshd:
    """A place where an sshd can be: it runs when it is started."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        self.client = directory / "client"
        self._process: subprocess.Popen[bytes] | None = None
        for name in ("host", "key"):
            make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / name)]
            subprocess.run(make, check=True)
        (directory / "server").write_text(_CONFIGURATION.format(directory=directory))
        self.resolves_to("127.0.0.1")

    @property
    def arguments(self) -> list[str]:
        return ["-De", "-f", str(self.directory / "server"), "-p", str(self.port)]

    def resolves_to(self, address: str) -> None:
        """Let every host name mean an address, for clients with our configuration."""
        text = _CLIENT.format(directory=self.directory, port=self.port, address=address)
        self.client.write_text(text)

    def start(self) -> None:
        assert SSHD is not None
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)  # it insists on that
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen([SSHD, *self.arguments], stderr=log)
        block_until(self._is_listening)

    def stop(self) -> None:
        if self._process is None:
            return
        for pid in _tree(self._process.pid)[1:]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)  # one that fell silent would stay
        with suppress(ProcessLookupError):
            self._process.terminate()
        self._process.wait()

    def break_off_one_session(self) -> None:
        """End a session with all that runs in it, as the end of its container would."""
        self._signal_one_session(signal.SIGKILL)

    def fall_silent(self) -> None:
        """Stop a session without closing it, as when a link is cut."""
        self._signal_one_session(signal.SIGSTOP)

    def _signal_one_session(self, number: signal.Signals) -> None:
        assert self._process is not None
        session, *_ = _children(self._process.pid)
        for pid in _tree(session):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def _is_listening(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


def _children(pid: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], stdout=-1, text=True)
    return [int(word) for word in found.stdout.split()]


def _tree(pid: int) -> list[int]:
    return [pid, *(each for child in _children(pid) for each in _tree(child))]
