"""Standard streams that may be closed, full or without a reader.

Imports only what is built in, because it is loaded first.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def open_missing() -> None:
    """Open the null device where a stream is closed.

    Otherwise the next file that is opened would become standard output.
    """
    for descriptor, (name, mode) in enumerate(_STREAMS):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # becomes the lowest free descriptor, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(descriptor, mode, closefd=False))


def flush() -> None:
    """Flush what is printed, and drop what cannot be written.

    Python would try again at the end, and print a traceback.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            _discard(stream)


def _discard(stream: TextIO) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, stream.fileno())
    except (OSError, ValueError):
        pass  # it is closed already
    finally:
        os.close(null)
