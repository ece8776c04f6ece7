"""The watchdog of one run: waits until the owner releases the lock, then reaps.

The kernel releases the lock however the owner dies, so a killed test run leaves nothing behind.
"""

import os
import sys
from pathlib import Path

from devcluster import locks, runs


def main(directory: Path) -> None:
    """Wait until the owner has ended, and clean up after it."""
    os.close(locks.wait_for_lock(directory / "lock"))
    runs.reap()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
