"""The guard of one run: waits until the owner lets go of the lock, then reaps.

The kernel frees the lock however the owner dies, so a killed test run leaves nothing behind.
"""

import os
import sys
from pathlib import Path

from devcluster import locks, runs


def main(directory: Path) -> None:
    """Wait for the owner's end and clean up after it."""
    os.close(locks.wait_for_lock(directory / "lock"))
    runs.reap()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
