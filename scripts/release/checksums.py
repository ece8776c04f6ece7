"""The digests of all files, as `sha256sum --check` reads them."""

import hashlib
from pathlib import Path

FILE = "SHA256SUMS"


def write(directory: Path) -> None:
    """Write the digests of the files in a directory to a file there."""
    files = sorted(path for path in directory.rglob("*") if path.is_file() and path.name != FILE)
    lines = (f"{digest(path)}  {path.relative_to(directory).as_posix()}\n" for path in files)
    (directory / FILE).write_text("".join(lines))


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
