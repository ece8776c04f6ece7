"""Warns if `--set` changes the slots of a job whose command says how many ranks it starts."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from mpi_operator.api.field_errors import FieldError
from mpi_operator.api.main_container import main_container
from mpi_operator.api.types import MPIJob, ReplicaType
from mpi_operator.api.validation import role_path
from mpi_operator.build.requested_ranks import slots
from mpi_operator.cli.format import counted
from mpi_operator.local.remote_exec.mpirun_wrapper import OPTION_WORDS

_PROGRAMS = ("mpirun", "mpiexec", "orterun", "mpiexec.hydra", "horovodrun")
_RANKS = ("n", "np", "c")
# How many arguments options of Hydra and horovodrun take, besides those of Open MPI.
_WORDS = {
    **OPTION_WORDS,
    **dict.fromkeys(("genv", "env"), 2),
    **dict.fromkeys(("genvlist", "envlist", "f", "hosts", "ppn", "perhost"), 1),
    **dict.fromkeys(("launcher", "prepend-pattern"), 1),
    **dict.fromkeys(("iface", "p", "min-np", "max-np", "host-discovery-script"), 1),
}


def warnings(job: MPIJob, settings: Sequence[str]) -> list[FieldError]:
    """What to say about settings that do not change the number of ranks."""
    changes = [each for each in settings if each.partition("=")[0] in ("workers", "slots")]
    launcher = job.spec.launcher
    if not changes or launcher is None:
        return []
    room = slots(job)
    container = main_container(job, launcher)
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    return [
        FieldError(
            role_path(ReplicaType.LAUNCHER),
            f"its command starts {counted(ranks, 'rank')}, but --set {' --set '.join(changes)} "
            f"makes {counted(room, 'slot')}. Without -n, mpirun starts one rank per slot",
        )
        for ranks in ranks_in([*map(str, words)])
        if ranks != room
    ][:1]


def ranks_in(words: Sequence[str]) -> Iterator[int]:
    """The numbers of ranks that a command line asks for, also in a script of a shell."""
    for index, word in enumerate(words):
        if PurePosixPath(word).name in _PROGRAMS:
            yield from _options(words[index + 1 :])
        elif " " in word:
            yield from ranks_in(_split(word))


def _options(words: Sequence[str]) -> Iterator[int]:
    rest = [*words]
    while rest and rest[0].startswith("-"):
        name, has_value, value = rest.pop(0).lstrip("-").partition("=")
        arguments = [value] if has_value else rest[: _WORDS.get(name, 0)]
        if not has_value:
            del rest[: len(arguments)]
        if name in _RANKS and arguments and arguments[0].isdecimal():
            yield int(arguments[0])


def _split(script: str) -> list[str]:
    try:
        return shlex.split(script, comments=True)
    except ValueError:
        return script.split()
