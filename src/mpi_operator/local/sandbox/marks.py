"""Variables by which the processes of a run are told apart from all others of the machine."""

RUN_VARIABLE = "MPI_OPERATOR_RUN"
CONTAINER_VARIABLE = "MPI_OPERATOR_CONTAINER"
