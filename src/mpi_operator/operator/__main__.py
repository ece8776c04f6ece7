"""`python -m mpi_operator.operator` is `mpi-operator`."""

import sys

from .program import main

sys.exit(main())
