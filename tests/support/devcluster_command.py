"""`python -m devcluster`, as people run it."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from devcluster import runs

Command = Callable[..., subprocess.CompletedProcess[str]]


def devcluster_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run one command to its end, whatever that is."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "devcluster", *arguments],
        cwd=Path(runs.__file__).parents[1],
        capture_output=True,
        text=True,
    )
