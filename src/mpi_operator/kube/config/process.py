"""Run a program for its output, and leave nothing of it behind."""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from tempfile import TemporaryFile
from typing import IO

# Enough for any certificate chain; the rest of a flood stays unread.
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

    Output goes to unnamed files and not to pipes: a helper that the program leaves running (an
    agent with the login in it, say) would hold a pipe open, and we would wait for the helper.
    """
    with TemporaryFile() as output, TemporaryFile() as errors:
        process = await asyncio.create_subprocess_exec(
            *argv,
            executable=executable,
            env=environment,
            stdin=None if terminal else asyncio.subprocess.DEVNULL,
            stdout=output,
            # Whoever types an answer has to see the question at once.
            stderr=None if terminal else errors,
            # A group of its own can be killed as a whole, but has no way to the terminal.
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
