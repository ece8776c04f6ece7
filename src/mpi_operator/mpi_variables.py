"""What differs between the MPIs: their environment variables, and how a host is written for them.

One table for the whole product: `build` gives these variables to the pods of a job, `local` adds
what pods need where they are processes of one machine. It depends on no other package.
"""

from collections.abc import Mapping

import msgspec

# The pods start together, so a worker's sshd may take some seconds longer than the launcher.
_SSH_ARGUMENTS = "-o ConnectionAttempts=10"
_MANY = "10000"


class RemoteShell(msgspec.Struct, frozen=True):
    """The variables by which a launcher is given its remote shell."""

    program: Mapping[str, str]
    """The variable that names the program."""
    aliases: tuple[str, ...] = ()
    """Other variables that name the program. If the user sets one, ours would only interfere."""
    kind: Mapping[str, str] = {}
    """The variable that chooses between ssh and others. Setting it to ssh is not a choice."""
    kind_aliases: Mapping[str, str] = {}

    @property
    def environment(self) -> dict[str, str]:
        return {**self.kind, **self.program}

    def is_chosen(self, given: Mapping[str, str]) -> bool:
        """Whether the user has chosen one, by any of the variables."""
        kinds = {**self.kind, **self.kind_aliases}
        return any(name in given for name in (*self.program, *self.aliases)) or any(
            given.get(name, ssh) != ssh for name, ssh in kinds.items()
        )


class MPIVariables(msgspec.Struct, frozen=True, kw_only=True):
    """One MPI. A job fills in {host}, {slots}, {hostfile} and {script}."""

    host_line: str
    launcher: Mapping[str, str]
    """Make `mpirun` read the hostfile, reach its workers, and end with its ranks."""
    remote_shells: tuple[RemoteShell, ...]
    exec_shell: Mapping[str, str]
    """Make `mpirun` start its daemons with {script}, from the launcher only: no worker may exec."""
    oversubscribe: Mapping[str, str] = {}
    """Let `mpirun` start more ranks than there are slots. An MPI without these does so anyway."""
    host_network: Mapping[str, str] = {}
    """For ranks whose pods are on the node's network, and so share its host name."""
    inherited: tuple[str, ...]
    """Beginnings of variables that would make this MPI believe it runs inside another job."""
    root: str = ""
    """Names the directory of an installation."""
    mpirun: tuple[str, ...] = ("mpirun",)
    """Begins a command line that the number of ranks and the program complete."""
    settings: tuple[str, ...]
    """Beginnings of variables by which a user tunes this MPI."""

    # What only pods on one machine need.
    unbound: Mapping[str, str] = {}
    """Do not bind ranks to cores: each pod would bind its first rank to the first core."""
    as_root: Mapping[str, str] = {}
    """Run as root without asking."""
    loopback: Mapping[str, str] = {}
    """Connect ranks over the loopback interface."""
    launcher_loopback: Mapping[str, str] = {}
    """The same for launchers, where nothing else chooses a network (`network_choice`)."""
    network: tuple[str, ...] = ()
    """Name the network that connects ranks, where loopback cannot."""
    network_choice: str = ""
    """Part of the name of each parameter that chooses networks."""
    shared_memory: tuple[str, ...] = ()
    """Name the directory in which ranks share memory."""
    rank_agent: tuple[str, ...] = ()
    """Name a program that starts each rank."""
    rank: tuple[str, ...] = ()
    """Hold the number of a rank."""
    job: str = ""
    """Holds the name of the job that a rank belongs to: what it spawns is a job of its own."""
    failures: Mapping[str, str] = {}
    """Make `mpirun` report every rank that fails, in lines that `local/mpi_noise` recognises."""

    @property
    def directing(self) -> frozenset[str]:
        """Variables by which we direct `mpirun`; a value from elsewhere would misdirect it."""
        shells = (name for shell in self.remote_shells for name in shell.environment)
        return frozenset({*self.launcher, *shells, *self.exec_shell, self.root})

    @property
    def hosts(self) -> dict[str, str]:
        """What `launcher` says about hosts, without the arguments for ssh."""
        return {name: value for name, value in self.launcher.items() if value != _SSH_ARGUMENTS}

    @property
    def hostfile(self) -> tuple[str, ...]:
        """Name the hostfile; the newest version of the MPI comes first."""
        return tuple(name for name, value in self.launcher.items() if value == "{hostfile}")[::-1]


# Open MPI 4 starts ranks with ORTE and 5 with PRRTE. Each ignores the other's variables, and if its
# own are missing it runs all ranks in the launcher without a warning.
_ORTE = {
    "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
    "OMPI_MCA_orte_default_hostfile": "{hostfile}",
    "OMPI_MCA_plm_rsh_args": _SSH_ARGUMENTS,
    "OMPI_MCA_orte_set_default_slots": "{slots}",
}
# No arguments for ssh: with more than 64 workers, daemons start further daemons, and PRRTE passes
# values to them only up to a "=", so that their ssh fails. Our remote shell tries again by itself.
_PRRTE = {
    "PRTE_MCA_prte_default_hostfile": "{hostfile}",
    "PRTE_MCA_prte_keep_fqdn_hostnames": "true",
    "PRTE_MCA_prte_set_default_slots": "{slots}",
    # A daemon starts ranks in threads, and may take one that has ended already for a running one.
    # Then mpirun waits for ever, or does not say which rank has failed.
    "PRTE_MCA_odls_base_max_threads": "0",
}

OPEN_MPI = MPIVariables(
    host_line="{host} slots={slots}",
    launcher=_ORTE | _PRRTE,
    oversubscribe={
        "OMPI_MCA_rmaps_base_oversubscribe": "true",
        # By slot: by core, the default, Open MPI 5 then puts all ranks on the first host.
        "PRTE_MCA_rmaps_default_mapping_policy": "slot:oversubscribe",
    },
    host_network={
        # Open MPI 5 takes ranks with the same host name for neighbours. This way of reducing then
        # looks for memory that pods do not share, and hangs.
        "OMPI_MCA_coll": "^han",
        # Open MPI 4 takes workers with the launcher's address for one and the same host, and
        # refuses a hostfile that has it twice. It works by luck if names sort after the launcher.
        "OMPI_MCA_if_base_do_not_resolve": "true",
    },
    remote_shells=(
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
    # Without a tree, daemons would detach from their sessions, which then could not report that a
    # worker is lost. And without that, no more than 128 sessions would begin.
    exec_shell={
        "OMPI_MCA_plm_rsh_agent": "{script}",  # Horovod looks for this variable
        "OMPI_MCA_plm_rsh_no_tree_spawn": "true",
        "OMPI_MCA_plm_rsh_num_concurrent": _MANY,
        "OMPI_MCA_orte_leave_session_attached": "true",
        "PRTE_MCA_plm_ssh_agent": "{script}",
        "PRTE_MCA_plm_ssh_no_tree_spawn": "true",
        "PRTE_MCA_plm_ssh_num_concurrent": _MANY,
        "PRTE_MCA_prte_leave_session_attached": "true",
    },
    inherited=("OMPI_", "PMIX_", "PRTE_", "ORTE_"),
    mpirun=("mpirun", "--allow-run-as-root"),  # in a container it usually is root
    settings=("OMPI_MCA_", "PMIX_MCA_", "PRTE_MCA_"),
    unbound={
        "PRTE_MCA_hwloc_default_binding_policy": "none",
        "OMPI_MCA_hwloc_base_binding_policy": "none",
    },
    as_root={
        f"{prefix}_ALLOW_RUN_AS_ROOT{suffix}": "1"
        for prefix in ("OMPI", "PRTE")
        for suffix in ("", "_CONFIRM")
    },
    launcher_loopback={"OMPI_MCA_btl_tcp_if_include": "lo"},
    network_choice="btl_tcp_if_",
    shared_memory=tuple(
        f"OMPI_MCA_{part}_backing_directory"
        for part in ("btl_sm", "btl_vader", "osc_sm", "osc_rdma")
    ),
    rank_agent=("PRTE_MCA_odls_base_exec_agent", "OMPI_MCA_orte_fork_agent"),
    rank=("PMIX_RANK", "OMPI_COMM_WORLD_RANK"),
    job="PMIX_NAMESPACE",
    failures={"PRTE_MCA_errmgr_base_verbose": "1"},
)
INTEL = MPIVariables(
    host_line="{host}:{slots}",
    launcher={
        "I_MPI_HYDRA_HOST_FILE": "{hostfile}",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": _SSH_ARGUMENTS,
        "I_MPI_PERHOST": "{slots}",
    },
    remote_shells=(
        RemoteShell(
            {"I_MPI_HYDRA_BOOTSTRAP_EXEC": "{script}"}, kind={"I_MPI_HYDRA_BOOTSTRAP": "ssh"}
        ),
    ),
    exec_shell={"I_MPI_HYDRA_BOOTSTRAP": "rsh", "I_MPI_HYDRA_BOOTSTRAP_EXEC": "{script}"},
    inherited=("I_MPI_",),
    settings=("I_MPI_",),
    root="I_MPI_ROOT",
    unbound={"I_MPI_PIN": "off"},
    loopback={"FI_TCP_IFACE": "lo"},
    rank=("PMI_RANK",),
)
MPICH = MPIVariables(
    host_line="{host}:{slots}",
    launcher={
        "HYDRA_HOST_FILE": "{hostfile}",
        "HYDRA_LAUNCH_EXTRA_ARGS": _SSH_ARGUMENTS,
    },
    remote_shells=(
        RemoteShell(
            {"HYDRA_LAUNCHER_EXEC": "{script}"},
            ("HYDRA_BOOTSTRAP_EXEC",),
            kind={"HYDRA_LAUNCHER": "ssh"},
            kind_aliases={"HYDRA_BOOTSTRAP": "ssh"},
        ),
    ),
    exec_shell={"HYDRA_LAUNCHER": "rsh", "HYDRA_LAUNCHER_EXEC": "{script}"},
    inherited=("PMI_", "HYDRA_", "MPIR_", "MPICH_"),
    settings=("HYDRA_", "MPIR_CVAR_", "MPICH_"),
    loopback={"FI_TCP_IFACE": "lo"},
    network=("UCX_NET_DEVICES",),  # UCX does not use loopback between hosts
    rank=("PMI_RANK",),
)

# By `mpiImplementation`.
MPIS: Mapping[str, MPIVariables] = {"OpenMPI": OPEN_MPI, "Intel": INTEL, "MPICH": MPICH}
