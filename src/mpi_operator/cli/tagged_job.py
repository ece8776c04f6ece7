"""`--prefix rank`: a job whose mpirun tags each line with its rank."""

import copy
from pathlib import PurePosixPath

from mpi_operator.kube.resources import Manifest

from .outcome import InvalidInput
from .rank_tags import OPTIONS
from .workload import LoadedJob

_MPIRUN = ("mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun")


def with_rank_tags(loaded: LoadedJob) -> LoadedJob:
    """The job with its mpirun told so."""
    implementation = loaded.job.spec.mpi_implementation.value
    return loaded._replace(manifest=_tagged(loaded.manifest, OPTIONS[implementation]))


def _tagged(job: Manifest, option: str) -> Manifest:
    changed = copy.deepcopy(job)
    launcher = changed["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
    for container in launcher["containers"]:
        for words in filter(None, (container.get("command"), container.get("args"))):
            if PurePosixPath(str(words[0])).name in _MPIRUN:
                words.insert(1, option)
                return changed
    raise InvalidInput(
        "--prefix=rank needs a launcher whose command is mpirun: in a script, "
        f"give {option} to mpirun yourself"
    )
