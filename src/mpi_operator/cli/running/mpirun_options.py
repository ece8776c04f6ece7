"""Jobs whose mpirun gets one more option: to tag lines with their rank, or not to wait for them."""

import copy
import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from mpi_operator.cli.command_errors import InvalidInput
from mpi_operator.cli.job_input.workload import LoadedJob
from mpi_operator.cli.job_output.rank_tags import OPTIONS
from mpi_operator.kube.resources import Manifest
from mpi_operator.local.mpi_installation import Installation
from mpi_operator.local.remote_exec.mpirun_wrapper import split_options

_MPIRUN = ("mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun")
# Open MPI 5 keeps the beginning of a line until the line ends, so that ranks do not interrupt each
# other. Then a progress bar moves when it is complete, and a question is asked after its answer.
_UNBUFFERED = ("--output", ":raw")


def with_rank_tags(loaded: LoadedJob) -> LoadedJob:
    """The job with its mpirun told to tag lines."""
    option = OPTIONS[loaded.job.spec.mpi_implementation.value]
    changed = copy.deepcopy(loaded.manifest)
    command = _command(changed)
    if command is None:
        raise InvalidInput(
            "--prefix=rank needs a launcher whose command is mpirun: in a script, "
            f"give {shlex.join(option)} to mpirun yourself"
        )
    command[1:1] = option
    return loaded._replace(manifest=changed)


def with_live_output(loaded: LoadedJob, installation: Installation) -> LoadedJob:
    """The job with its mpirun told to pass on what ranks print at once, if it can be told."""
    changed = copy.deepcopy(loaded.manifest)
    command = _command(changed)
    if command is None or not installation.has_prrte or _chooses_output(command):
        return loaded
    command[1:1] = _UNBUFFERED
    return loaded._replace(manifest=changed)


def _command(job: Manifest) -> list[Any] | None:
    """The command line of the launcher's mpirun, to be changed."""
    launcher = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
    for container in launcher["containers"]:
        for words in filter(None, (container.get("command"), container.get("args"))):
            if PurePosixPath(str(words[0])).name in _MPIRUN:
                found: list[Any] = words
                return found
    return None


def _chooses_output(command: Sequence[object]) -> bool:
    options, _ = split_options([str(word) for word in command[1:]])
    return any("output" in name or name in ("xml", "timestamp") for name, _, _ in options)
