"""For people at a shell: `mpijob`. One module per verb: parse, act, print."""

import sys


def main() -> None:
    """The program `mpijob`."""
    try:
        import click  # noqa: F401, PLC0415
    except ImportError:
        sys.exit("mpijob needs click: pip install 'mpi-operator[cli]'")
    from .main import mpijob  # noqa: PLC0415

    mpijob()
