"""`python -m mpi_operator` is the command `mpijob`."""

from .cli import main

main()
