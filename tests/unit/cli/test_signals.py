"""What signals do to `mpijob`."""

import os
import signal
import subprocess
import sys
import termios
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
COMMAND = ROOT / "src" / "bin" / "mpijob"

# Waits for its input like `input()`. But that does not see a signal which arrives just before it.
WAIT = "import select; [*iter(lambda: select.select([0], [], [], 0.01)[0], [0])]"
INSTALL = f"from mpi_operator.cli import signals; signals.install(); print(flush=True); {WAIT}"
RAW = f"""
from mpi_operator.cli import signals
from mpi_operator.cli.verbs import terminal
signals.install()
with terminal._raw():
    print("ready", flush=True)
    {WAIT}
"""


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("handler", "code"), [(signal.SIG_IGN, 0), (signal.SIG_DFL, None)])
def test_a_signal_ends_the_command_unless_the_caller_ignores_it(number, handler, code):
    process = subprocess.Popen(
        [sys.executable, "-c", INSTALL],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(number, handler),
    )
    assert process.stdout
    assert process.stdout.readline() == b"\n"
    process.send_signal(number)
    if code is None:
        code = 128 + number
        process.wait(60)
    process.communicate(b"\n", timeout=60)
    assert process.returncode == code


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_command_while_it_is_being_imported(tmp_path, number):
    package = tmp_path / "mpi_operator" / "cli"
    package.mkdir(parents=True)
    package.with_name("__init__.py").touch()
    (package / "__init__.py").write_text(f"print(flush=True); {WAIT}")
    process = subprocess.Popen(
        [sys.executable, COMMAND],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout
    assert process.stdout.readline() == b"\n"
    process.send_signal(number)
    assert process.wait(60) == 128 + number
    assert process.communicate() == (b"", b"")


def test_the_command_is_that_script():
    """What pip would write for an entry point imports modules before our first line."""
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = configuration["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["shared-scripts"] == {str(COMMAND.relative_to(ROOT)): "mpijob"}
    assert os.access(COMMAND, os.X_OK)


def test_a_killed_exec_leaves_the_terminal_as_it_was():
    ours, theirs = os.openpty()
    before = termios.tcgetattr(theirs)
    process = subprocess.Popen(
        [sys.executable, "-c", RAW], stdin=theirs, stdout=theirs, start_new_session=True
    )
    shown = b""
    while b"ready" not in shown:
        shown += os.read(ours, 4096)
    assert termios.tcgetattr(theirs) != before
    process.terminate()
    assert process.wait(60) == 128 + signal.SIGTERM
    assert termios.tcgetattr(theirs) == before
    os.close(ours)
    os.close(theirs)
