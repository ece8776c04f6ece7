"""The command line `mpijob`: verbs parse, act and print; the other packages do the work."""

import gc
import os
import sys

from . import signals, standard_streams

# Objects between two collections: more than a small job makes. Python's default scans all that was
# imported dozens of times, although none of it is garbage: a tenth of the time of such a job.
_GC_THRESHOLD = 200_000


def main() -> None:
    """The program `mpijob`."""
    signals.install()
    standard_streams.open_missing()
    gc.set_threshold(_GC_THRESHOLD)
    try:
        import click  # noqa: F401, PLC0415
    except ImportError:
        sys.exit("mpijob needs click: pip install 'mpi-operator[cli]'")
    from .main import mpijob  # noqa: PLC0415

    try:
        mpijob(prog_name="mpijob")
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        sys.exit(f"mpijob: {where}{error.strerror or error}")
    except SystemExit as ended:
        if isinstance(ended.code, str):
            raise  # Python prints it
        standard_streams.flush()
        os._exit(ended.code or 0)  # there is nothing to clean up, and Python would take its time
    finally:
        standard_streams.flush()
