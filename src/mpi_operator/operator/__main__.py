"""`python -m mpi_operator.operator` is `mpi-operator`."""

import sys

from .main import main

sys.exit(main())
