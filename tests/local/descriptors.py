"""The open descriptors of this process."""

import gc
import os


def descriptors() -> list[str]:
    """What each of them is, when garbage is collected."""
    gc.collect()
    found = []
    for entry in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{entry}"))
        except OSError:
            continue  # that of this look
    return found
