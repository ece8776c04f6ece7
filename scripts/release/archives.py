"""Compressed archives that are the same whenever and wherever they are made."""

import gzip
import io
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path


def write(target: Path, files: Mapping[str, Path], epoch: int) -> None:
    """Write files, by their names in the archive, as .tar.gz."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with (
        target.open("wb") as raw,
        _compressed(raw, epoch) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for name in sorted(files):
            content = files[name].read_bytes()
            archive.addfile(_entry(name, len(content), epoch), io.BytesIO(content))


def compress(source: Path, target: Path, epoch: int) -> None:
    """Compress a file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with source.open("rb") as content, target.open("wb") as raw, _compressed(raw, epoch) as output:
        shutil.copyfileobj(content, output, 1 << 20)


def _compressed(raw: io.BufferedWriter, epoch: int) -> gzip.GzipFile:
    # Without a name: gzip would store that of the file.
    return gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=epoch)


def _entry(name: str, size: int, epoch: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mtime, entry.mode = size, epoch, 0o644
    return entry
