"""Run a program, return its output, and leave no process behind."""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from tempfile import TemporaryFile
from typing import IO

# Enough for any certificate chain; more is not read.
_OUTPUT_BYTES = 1024 * 1024
_ERROR_BYTES = 4096


@dataclass(frozen=True)
class Finished:
    """How a program ended."""

    code: int
    output: bytes = field(repr=False)
    errors: bytes = field(repr=False)
    """The end of its standard error; empty when that went to the terminal."""


async def run(
    executable: str,
    argv: Sequence[str],
    *,
    environment: Mapping[str, str],
    terminal: bool,
    timeout: float,
) -> Finished:
    """Run to the end, or raise TimeoutError.

    Output goes to unnamed files and not to pipes: a helper process that the program leaves running
    (a login agent, say) would keep a pipe open, and we would wait for it.
    """
    with TemporaryFile() as output, TemporaryFile() as errors:
        process = await asyncio.create_subprocess_exec(
            *argv,
            executable=executable,
            env=environment,
            stdin=None if terminal else asyncio.subprocess.DEVNULL,
            stdout=output,
            # The user must see a prompt at once.
            stderr=None if terminal else errors,
            # A process group can be killed as a whole, but cannot use the terminal.
            start_new_session=not terminal,
        )
        try:
            async with asyncio.timeout(timeout):
                code = await process.wait()
        except BaseException:
            await _kill(process, group=not terminal)
            raise
        return Finished(code, _start(output, _OUTPUT_BYTES), _end(errors, _ERROR_BYTES))


async def _kill(process: asyncio.subprocess.Process, *, group: bool) -> None:
    with suppress(ProcessLookupError):
        if group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    await process.wait()


def _start(file: IO[bytes], limit: int) -> bytes:
    file.seek(0)
    return file.read(limit)


def _end(file: IO[bytes], limit: int) -> bytes:
    file.seek(max(0, file.seek(0, os.SEEK_END) - limit))
    return file.read(limit)
