"""Completion of the names of jobs, in real shells on a terminal."""

import os
import pty
import re
import shutil
import subprocess
import sys

import pytest

from tests.local.environments import environment
from tests.local.shell import Shell, job
from tests.support.waiting import block_until

SHELLS = {
    "bash": (["--norc", "-i"], 'eval "$(_MPIJOB_COMPLETE=bash_source mpijob)"'),
    "zsh": (
        ["-f", "-i"],
        'autoload -U compinit; compinit -u; eval "$(_MPIJOB_COMPLETE=zsh_source mpijob)"',
    ),
    "fish": (["--no-config", "-i"], "_MPIJOB_COMPLETE=fish_source mpijob | source"),
}
BEGINNING_OF_LINE = "\x01"


@pytest.fixture
def path(tmp_path):
    """A directory with `mpijob`."""
    program = tmp_path / "bin" / "mpijob"
    program.parent.mkdir()
    call = "from mpi_operator.cli import main; main()"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{call}" "$@"\n')
    program.chmod(0o755)
    return program.parent


@pytest.mark.parametrize("kind", SHELLS)
def test_a_shell_completes_the_name_of_a_job(tmp_path, path, kind):
    if shutil.which(kind) is None:
        pytest.skip(f"{kind} is not installed: scripts/test-packages installs it")
    ours = Shell(tmp_path / "state", environment("OpenMPI"))
    assert ours.run("run", "-q", job(tmp_path, ["true"]))[0] == 0
    options, configuration = SHELLS[kind]
    typed = f"{configuration}\nmpijob logs p\t{BEGINNING_OF_LINE}echo found: \nexit\n"
    variables = {
        "PATH": f"{path}:{ours.environment['PATH']}",
        "TERM": "dumb",
        "HOME": str(tmp_path),
    }
    printed = on_a_terminal([kind, *options], typed, {**ours.environment, **variables})
    assert re.search(r"[\r\n]found: mpijob logs pi\s", printed), printed


def on_a_terminal(argv: list[str], typed: str, env: dict[str, str]) -> str:
    """What a program prints on a terminal until it ends, if this is typed."""
    ours, theirs = pty.openpty()
    own = ["setsid", "--ctty", "--wait"]  # fish wants the terminal of its session
    process = subprocess.Popen([*own, *argv], stdin=theirs, stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    os.set_blocking(ours, False)
    os.write(ours, typed.encode())
    printed = bytearray()

    def has_ended() -> bool:
        try:
            printed.extend(os.read(ours, 65536))
        except BlockingIOError:
            pass
        except OSError:  # nobody has the other end open
            return True
        return False

    try:
        block_until(has_ended, 60)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    return printed.decode(errors="replace")
