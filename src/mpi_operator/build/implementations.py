"""What differs between the MPIs: how a host is written, and what their launchers read."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mpi_operator.api import MPIJob
from mpi_operator.api.types import Implementation

# The pods start together, so a worker's sshd may take some seconds longer than the launcher.
_SSH_ARGUMENTS = "-o ConnectionAttempts=10"


@dataclass(frozen=True)
class Dialect:
    """One MPI. Braces stand for what a job fills in."""

    host_line: str
    launcher_environment: Mapping[str, str]
    host_network: Mapping[str, str]
    """What ranks need to know whose pods are on the network of the node, and share its name."""
    remote_shells: tuple["RemoteShell", ...]


@dataclass(frozen=True)
class RemoteShell:
    """The variables by which a launcher is given its remote shell."""

    program: Mapping[str, str]
    """What names our script."""
    aliases: tuple[str, ...] = ()
    """Other variables that name a program; then ours would only mix with theirs."""
    kind: Mapping[str, str] = field(default_factory=dict)
    """What chooses between ssh and others. Who says ssh has not chosen anything."""
    kind_aliases: Mapping[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        return {**self.kind, **self.program}

    def is_chosen(self, given: Mapping[str, str]) -> bool:
        """Whether the user has chosen one, by any of the variables."""
        kinds = {**self.kind, **self.kind_aliases}
        return any(name in given for name in (*self.program, *self.aliases)) or any(
            given.get(name, ssh) != ssh for name, ssh in kinds.items()
        )


# Open MPI 4 starts ranks with ORTE and 5 with PRRTE. Each ignores the other's variables, and with
# its own missing runs all ranks in the launcher without a word.
_ORTE = {
    "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
    "OMPI_MCA_orte_default_hostfile": "{hostfile}",
    "OMPI_MCA_plm_rsh_args": _SSH_ARGUMENTS,
    "OMPI_MCA_orte_set_default_slots": "{slots}",
}
_PRRTE = {
    "PRTE_MCA_prte_default_hostfile": "{hostfile}",
    "PRTE_MCA_prte_keep_fqdn_hostnames": "true",
    "PRTE_MCA_prte_set_default_slots": "{slots}",
    "PRTE_MCA_plm_ssh_args": _SSH_ARGUMENTS,
}

IMPLEMENTATIONS = {
    Implementation.OPEN_MPI: Dialect(
        "{host} slots={slots}",
        _ORTE | _PRRTE,
        {
            # Open MPI 5 takes ranks with the same host name for neighbours. This way of reducing
            # then looks for memory that pods do not share, and waits for ever.
            "OMPI_MCA_coll": "^han",
            # Open MPI 4 takes workers with the launcher's address for one and the same host, and
            # refuses a hostfile that has it twice. It is lucky where names come after the launcher.
            "OMPI_MCA_if_base_do_not_resolve": "true",
        },
        (
            RemoteShell(
                {"OMPI_MCA_plm_rsh_agent": "{script}"},
                ("OMPI_MCA_orte_rsh_agent", "OMPI_MCA_pls_rsh_agent"),
                kind_aliases={"OMPI_MCA_plm": "rsh"},
            ),
            RemoteShell(
                {"PRTE_MCA_plm_ssh_agent": "{script}"},
                ("PRTE_MCA_plm_rsh_agent",),
                kind_aliases={"PRTE_MCA_plm": "ssh"},
            ),
        ),
    ),
    Implementation.INTEL: Dialect(
        "{host}:{slots}",
        {
            "I_MPI_HYDRA_HOST_FILE": "{hostfile}",
            "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": _SSH_ARGUMENTS,
            "I_MPI_PERHOST": "{slots}",
        },
        {},
        (
            RemoteShell(
                {"I_MPI_HYDRA_BOOTSTRAP_EXEC": "{script}"}, kind={"I_MPI_HYDRA_BOOTSTRAP": "ssh"}
            ),
        ),
    ),
    Implementation.MPICH: Dialect(
        "{host}:{slots}",
        {
            "HYDRA_HOST_FILE": "{hostfile}",
            "HYDRA_LAUNCH_EXTRA_ARGS": _SSH_ARGUMENTS,
        },
        {},
        (
            RemoteShell(
                {"HYDRA_LAUNCHER_EXEC": "{script}"},
                ("HYDRA_BOOTSTRAP_EXEC",),
                kind={"HYDRA_LAUNCHER": "ssh"},
                kind_aliases={"HYDRA_BOOTSTRAP": "ssh"},
            ),
        ),
    ),
}


def host_line(job: MPIJob, host: str) -> str:
    """A line of the hostfile."""
    line = IMPLEMENTATIONS[job.spec.mpi_implementation].host_line
    return line.format(host=host, slots=job.spec.slots_per_worker)


def launcher_environment(job: MPIJob, hostfile: str) -> dict[str, str]:
    """The variables that make mpirun read a hostfile, and ranks get along."""
    dialect = IMPLEMENTATIONS[job.spec.mpi_implementation]
    worker = job.spec.worker
    is_on_host = worker is not None and worker.template["spec"].get("hostNetwork")
    variables = {**dialect.launcher_environment, **(dialect.host_network if is_on_host else {})}
    slots = job.spec.slots_per_worker
    return {name: value.format(hostfile=hostfile, slots=slots) for name, value in variables.items()}


def remote_shell_environment(job: MPIJob, script: str) -> dict[str, str]:
    """The variables that make mpirun start its daemons by a script, unless the user chose how."""
    given = _given(job)
    return {
        name: value.format(script=script)
        for shell in IMPLEMENTATIONS[job.spec.mpi_implementation].remote_shells
        if not shell.is_chosen(given)
        for name, value in shell.environment.items()
    }


def chooses_remote_shell(job: MPIJob) -> bool:
    """Whether the user has chosen a remote shell."""
    given = _given(job)
    shells = IMPLEMENTATIONS[job.spec.mpi_implementation].remote_shells
    return any(shell.is_chosen(given) for shell in shells)


def _given(job: MPIJob) -> dict[str, str]:
    """The variables that the template of the launcher has; those from elsewhere are not known."""
    container = job.spec.launcher.template["spec"]["containers"][0]
    return {each["name"]: each.get("value", "") for each in container.get("env") or ()}
