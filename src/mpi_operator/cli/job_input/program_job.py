"""A job from a program: `mpijob run -np 4 python train.py`, without a file.

By default all ranks run in the launcher: they share memory, and `mpirun` starts them itself,
without a daemon on another host.
"""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import NamedTuple

from mpi_operator.api.decode import decode_job, warnings
from mpi_operator.api.field_errors import InvalidJob
from mpi_operator.api.types import API_VERSION, KIND
from mpi_operator.cli.command_errors import InvalidInput
from mpi_operator.cli.format import counted
from mpi_operator.kube.resources import Manifest
from mpi_operator.local import mpi_installation
from mpi_operator.local.kubelet.capacity import GPU
from mpi_operator.local.mpi_installation import IMPLEMENTATIONS, Installation, NotInstalled
from mpi_operator.mpi_variables import MPIS

from .config_objects import NAMESPACE
from .environment import with_environment
from .run_arguments import FILES, RunArguments, Shape
from .workload import LoadedJob

_DEFAULT_MPI = "OpenMPI"
# Programs whose first argument says more about the job than their own name.
_INTERPRETER = re.compile(r"(python|pypy|perl|ruby|julia|node|R|Rscript|bash|sh|zsh|dash)[0-9.]*")
_LONGEST_NAME = 40  # the names of pods are longer, and have 63 characters at most
# $(NAME) in a command means a variable to Kubernetes, and $$ a dollar sign.
_DOLLAR = re.compile(r"\$(?=[$(])")


class Size(NamedTuple):
    """How many ranks a job has, and how many workers they run on; 0 if the launcher runs them."""

    ranks: int
    workers: int
    slots: int


def load(arguments: RunArguments) -> LoadedJob:
    """The job that runs a program in the current directory."""
    _check_program(arguments.words)
    installation = _installation(arguments)
    implementation = installation.implementation if installation else _named(arguments.mpi)
    manifest = manifest_of(arguments.words, arguments.shape, implementation, arguments.image)
    manifest = with_environment(manifest, mpi_settings(implementation, os.environ))
    manifest = _with_settings(manifest, arguments.changes.settings)
    _check_workers(manifest)
    manifest = with_environment(manifest, arguments.changes.variables)
    manifest["metadata"]["namespace"] = NAMESPACE
    try:
        job = decode_job(manifest)
    except InvalidJob as invalid:
        raise InvalidInput("\n".join(map(str, invalid.errors))) from invalid
    return LoadedJob(
        manifest,
        job,
        warnings(manifest),
        _working_directory(),
        installation=installation,
        is_name_free=True,
    )


def _with_settings(manifest: Manifest, settings: Sequence[str]) -> Manifest:
    if not settings:
        return manifest
    from .set_option import with_settings  # noqa: PLC0415 — loads a parser of YAML

    return with_settings(manifest, settings)


def manifest_of(
    words: Sequence[str], shape: Shape, implementation: str, image: str | None
) -> Manifest:
    """The manifest of a job that runs a program."""
    size = size_of(shape)
    image = image or f"mpioperator/{IMPLEMENTATIONS[implementation].extra}"
    command = [*MPIS[implementation].mpirun, "-n", str(size.ranks), *map(escaped, words)]
    launcher: Manifest = {"name": "launcher", "image": image, "command": command}
    worker: Manifest = {"name": "worker", "image": image}
    if shape.gpus:
        (worker if size.workers else launcher)["resources"] = {"limits": {GPU: shape.gpus}}
    # Never: with backoffLimit 0 the kubelet would start a failed program once more.
    roles: Manifest = {"Launcher": {"restartPolicy": "Never", "template": _template(launcher)}}
    if size.workers:
        roles["Worker"] = {"replicas": size.workers, "template": _template(worker)}
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name_of(words)},
        "spec": {
            "mpiImplementation": implementation,
            "slotsPerWorker": size.slots,
            **({} if size.workers else {"runLauncherAsWorker": True}),
            "runPolicy": {"cleanPodPolicy": "Running", "backoffLimit": 0},
            "mpiReplicaSpecs": roles,
        },
    }


def _template(container: Manifest) -> Manifest:
    return {"spec": {"containers": [container]}}


def size_of(shape: Shape) -> Size:
    """The missing numbers from the given ones; ranks fill workers one after the other."""
    ranks, workers, slots, _ = shape
    if workers is None:
        if ranks is not None and (slots is None or ranks <= slots):
            return Size(ranks, 0, slots or ranks)
        workers = 1 if ranks is None or slots is None else -(-ranks // slots)
    if slots is None:
        slots = 1 if ranks is None else -(-ranks // workers)
    ranks = workers * slots if ranks is None else ranks
    if ranks > workers * slots:
        raise InvalidInput(
            f"-np {ranks} does not fit: {counted(workers, 'worker')} with"
            f" {counted(slots, 'slot')} each have room for {counted(workers * slots, 'rank')}"
        )
    return Size(ranks, workers, slots)


def name_of(words: Sequence[str]) -> str:
    """A name for the job of a program: `train` for `python -u train.py`."""
    text = re.sub(r"[^a-z0-9]+", "-", _title(words).lower())
    text = text.strip("-")[:_LONGEST_NAME].strip("-")
    return text if text[:1].isalpha() else f"job-{text}".strip("-")


def _title(words: Sequence[str]) -> str:
    program, *arguments = words
    own = PurePath(program).name
    if not _INTERPRETER.fullmatch(own):
        return own
    flags = [word for word in arguments if word.startswith("-")]
    if "-c" in flags:
        return own
    script = next((word for word in arguments if not word.startswith("-")), program)
    return script if "-m" in flags else PurePath(script).stem


def escaped(word: str) -> str:
    """A word of a command that means the same after Kubernetes has replaced variables in it."""
    return _DOLLAR.sub("$$", word)


def mpi_settings(implementation: str, environment: Mapping[str, str]) -> list[str]:
    """The variables by which the user tunes the MPI, which `mpirun` itself would read.

    In a rank of another job they are not the user's, and would misdirect this one.
    """
    if any(name in environment for mpi in MPIS.values() for name in mpi.rank):
        return []
    mpi = MPIS[implementation]
    return [
        f"{name}={escaped(value)}"
        for name, value in sorted(environment.items())
        if name.startswith(mpi.settings) and name not in mpi.directing
    ]


def _check_program(words: Sequence[str]) -> None:
    """Refuse what `mpirun` could only fail to execute: nothing, and the file of a job."""
    program = words[0]
    if not program:
        raise InvalidInput("the program is empty: give its name after the options")
    if program.endswith(FILES) and os.path.isfile(program) and not os.access(program, os.X_OK):
        raise InvalidInput(
            f"{program} is not a program: with -np or --workers, `mpijob run` runs a program",
            f"mpijob run {program} --set workers=2  # runs the job in the file",
        )


def _check_workers(manifest: Manifest) -> None:
    """Refuse workers that only `--set` asks for: they would have no template."""
    worker = manifest["spec"]["mpiReplicaSpecs"].get("Worker")
    if isinstance(worker, dict) and "template" not in worker:
        raise InvalidInput(
            "without --workers all ranks run in the launcher: --set cannot add workers",
            "mpijob run --workers 2 …  # spreads the ranks over 2 workers",
        )


def _installation(arguments: RunArguments) -> Installation | None:
    """The MPI to run the program with. Printing its job needs none."""
    try:
        if arguments.mpi:
            return mpi_installation.find(_named(arguments.mpi))
        return mpi_installation.find_any()
    except NotInstalled as missing:
        if arguments.is_dry_run:
            return None
        raise InvalidInput(str(missing), missing.command) from missing


def _named(mpi: str | None) -> str:
    """The implementation of a short name, such as `mpich`."""
    known = (name for name, each in IMPLEMENTATIONS.items() if each.extra == mpi)
    return next(known, _DEFAULT_MPI)


def _working_directory() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise InvalidInput("the current directory no longer exists") from error
