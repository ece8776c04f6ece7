"""Why the program ended, as a number for machines and a sentence for people."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What the operator's process ends with. Anything but 0 is worth a restart and a look."""

    ASKED_TO_STOP = 0
    BUG = 1
    USAGE = 2
    KIND_MISSING = 3
    NOT_ALLOWED = 4
    LEASE_LOST = 5
    BAD_CONFIGURATION = 6
    PORT_TAKEN = 7


INSTALL_CRD = "kubectl apply -f deploy/crds/mpijobs.kubeflow.org.yaml"

MEANINGS: dict[ExitCode, tuple[str, str]] = {
    ExitCode.ASKED_TO_STOP: (
        "asked to stop, by SIGTERM or SIGINT",
        "nothing; also the end of --help and --version",
    ),
    ExitCode.BUG: (
        "a mistake in the operator",
        "report it, with the last log line",
    ),
    ExitCode.USAGE: (
        "flags that make no sense",
        "see the sentence on stderr, and --help",
    ),
    ExitCode.KIND_MISSING: (
        "the API server does not know a kind that is needed, such as MPIJob",
        f"{INSTALL_CRD}; for PodGroups install the gang scheduler",
    ),
    ExitCode.NOT_ALLOWED: (
        "the API server does not let us read what we need",
        "apply deploy/rbac/; the log says what is missing, in the server's words",
    ),
    ExitCode.LEASE_LOST: (
        "somebody else leads now, or the lease could not be renewed",
        "nothing, if it is rare; else look at the API server and the network",
    ),
    ExitCode.BAD_CONFIGURATION: (
        "no kubeconfig or service account that can work",
        "see the log, which says which file and which entry",
    ),
    ExitCode.PORT_TAKEN: (
        "a port to answer probes or to serve metrics on cannot be had",
        "choose another with --health-port or --monitoring-port",
    ),
}

# Not ours to choose: how a shell tells that a signal ended a process.
SECOND_SIGNAL = ("128 + n", "signal n came a second time, while stopping", "nothing")


class Ending(Exception):
    """The program ends: with which code, why, and the facts for the log."""

    def __init__(self, code: ExitCode, why: str, **facts: object) -> None:
        super().__init__(why)
        self.code = code
        self.why = why
        self.facts = facts
