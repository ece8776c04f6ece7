"""Small files. A pod gets dozens of them before it starts, and somebody waits for that."""

import os
from pathlib import Path


def write_file(path: Path, content: bytes, mode: int) -> None:
    """Write a file that has this mode, whatever mask this process has."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    with open(os.open(path, flags, mode), "wb", buffering=0) as file:
        os.fchmod(file.fileno(), mode)
        view = memoryview(content)
        while view:
            view = view[file.write(view) :]
