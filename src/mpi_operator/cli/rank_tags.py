"""The rank of each line, which only `mpirun` knows: its own tags, in one form for every MPI."""

import copy
import re
from pathlib import PurePosixPath

from mpi_operator.kube.resources import Manifest

from .outcome import InvalidInput
from .workload import LoadedJob

_MPIRUN = ("mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun")
_OPTIONS = {"OpenMPI": "--tag-output", "MPICH": "-prepend-rank", "Intel": "-prepend-rank"}
# Open MPI: `[1,0]<stdout>: hi`; the others: `[0] hi`.
_TAG = re.compile(rb"\[(?:[^\]\s]*,)?(\d+)\](?:<std(?:out|err|diag)>:)? ?")


def with_rank_tags(loaded: LoadedJob) -> LoadedJob:
    """A job whose mpirun tags each line with its rank."""
    implementation = loaded.job.spec.mpi_implementation.value
    return loaded._replace(manifest=_tagged(loaded.manifest, _OPTIONS[implementation]))


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


def split_tag(printed: bytes) -> tuple[str, bytes]:
    """The rank of a line and the line without its tag; "" if it has none."""
    tag = _TAG.match(printed)
    return (tag[1].decode(), printed[tag.end() :]) if tag else ("", printed)
