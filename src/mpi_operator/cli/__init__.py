"""For people at a shell: `mpijob`. One module per verb: parse, act, print."""

import gc
import sys

# Of objects, between two looks for garbage. What is loaded is none, and by default Python looks
# through it dozens of times: that was a tenth of the time in which a small job starts and ends.
_LOOK_AFTER = 50_000


def main() -> None:
    """The program `mpijob`."""
    gc.set_threshold(_LOOK_AFTER)
    try:
        import click  # noqa: F401, PLC0415
    except ImportError:
        sys.exit("mpijob needs click: pip install 'mpi-operator[cli]'")
    from .main import mpijob  # noqa: PLC0415

    try:
        mpijob()
    finally:
        gc.freeze()  # nor is it worth a look at the end
