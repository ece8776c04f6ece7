"""The exit codes of `mpi-operator`, and the exception that ends it with one."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Why the process ended. Every code but 0 is worth a restart and an investigation."""

    STOPPED = 0
    BUG = 1
    USAGE = 2
    KIND_MISSING = 3
    FORBIDDEN = 4
    LEASE_LOST = 5
    BAD_CONFIGURATION = 6
    PORT_IN_USE = 7
    TRAINING_OPERATOR = 8


INSTALL_CRD = "kubectl apply -f deploy/crd/mpijobs.kubeflow.org.yaml"

# Exit code → what happened, what to do.
MEANINGS: dict[ExitCode, tuple[str, str]] = {
    ExitCode.STOPPED: (
        "The operator was stopped by SIGTERM or SIGINT, or printed --help or --version",
        "Nothing",
    ),
    ExitCode.BUG: (
        "The operator failed because of a bug",
        "Report the bug with the last log line",
    ),
    ExitCode.USAGE: (
        "A flag is unknown or has an invalid value",
        "Read the error on stderr and --help",
    ),
    ExitCode.KIND_MISSING: (
        "The API server does not serve a required kind, such as MPIJob",
        f"{INSTALL_CRD}; for PodGroup, install the gang scheduler",
    ),
    ExitCode.FORBIDDEN: (
        "The operator is not allowed to read what it needs",
        "Apply deploy/rbac/; the log has the API server's error for each missing permission",
    ),
    ExitCode.LEASE_LOST: (
        "Another process became the leader, or the lease could not be renewed",
        "Nothing if it is rare; otherwise check the API server and the network",
    ),
    ExitCode.BAD_CONFIGURATION: (
        "The kubeconfig or the service account cannot be used",
        "Read the log, which names the file and the entry",
    ),
    ExitCode.PORT_IN_USE: (
        "The health, metrics or webhook port is in use",
        "Choose another port with --health-port, --monitoring-port or --webhook-port",
    ),
    ExitCode.TRAINING_OPERATOR: (
        "A training-operator that runs MPIJobs was started",
        "Scale it to 0, or give it --enable-scheme for every kind but mpijob",
    ),
}

# Not ours to choose: shells report a process that a signal ended in this way.
SECOND_SIGNAL = ("128 + n", "Signal n arrived while the operator was already stopping", "Nothing")


class Exit(Exception):
    """Ends the operator with an exit code; the message and the fields go to the log."""

    def __init__(self, code: ExitCode, message: str, **fields: object) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.fields = fields
