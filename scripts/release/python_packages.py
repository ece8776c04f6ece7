"""The wheel and the source distribution."""

import os
import subprocess
import sys
from pathlib import Path

from scripts.release.source import Source


def build(source: Source, directory: Path) -> Path:
    """Build both with the pinned hatchling; return the path of the wheel."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(directory.resolve())],
        cwd=source.directory,
        # The times of the files in both.
        env=os.environ | {"SOURCE_DATE_EPOCH": str(source.epoch)},
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    [wheel] = directory.glob("*.whl")
    return wheel
