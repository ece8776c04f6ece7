"""The command line `mpijob`. One module per verb: parse, act, print."""

import gc
import sys

# Objects between two collections. Python's default scans everything that was imported dozens of
# times, although none of it is garbage: a tenth of the time of a small job.
_GC_THRESHOLD = 50_000


def main() -> None:
    """The program `mpijob`."""
    gc.set_threshold(_GC_THRESHOLD)
    try:
        import click  # noqa: F401, PLC0415
    except ImportError:
        sys.exit("mpijob needs click: pip install 'mpi-operator[cli]'")
    from .main import mpijob  # noqa: PLC0415

    try:
        mpijob()
    finally:
        gc.freeze()  # the process ends: collecting would be wasted time
