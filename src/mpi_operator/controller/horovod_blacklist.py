"""Workers that are back, and that Horovod does not use: it has blacklisted their hosts.

Elastic Horovod never uses a host again on which a rank failed, unless `horovodrun` has the option
`--blacklist-cooldown-range`. A worker that was replaced has the name of the one before, so its pod
runs, the list of hosts has it, and nothing happens there. Horovod logs that on level INFO only,
which few people choose. So it is concluded from what is known: what the launcher runs, and that it
has run since before the worker was lost. Whether a rank ran there by then is not known, so the
message says "probably".
"""

from datetime import datetime

from mpi_operator.api import names
from mpi_operator.api.main_container import launcher_command_line
from mpi_operator.api.types import MPIJob

from . import pod_state
from .cached_types import Pod
from .decision import Decision
from .observed import Observed
from .problems import Problem, ProblemReason
from .replacement import stored_counts

_ELASTIC = ("--host-discovery-script", "--min-np", "--min-num-proc")
_COOLDOWN = "--blacklist"  # horovodrun takes options that are cut short
_SETTING = "--blacklist-cooldown-range 10 300"


def blacklisted_hosts(seen: Observed, now: datetime) -> Decision:
    """Report all workers that are back in vain, as one problem."""
    if not _blacklists_forever(seen.job):
        return Decision()
    launchers = filter(pod_state.is_running, seen.launcher_pods)
    began = min((now - pod_state.running_time(pod, now) for pod in launchers), default=None)
    unused = [names.worker(seen.job, index) for index in _back(seen, began)] if began else []
    if not unused:
        return Decision()
    return Decision(problems=(Problem(ProblemReason.HOST_BLACKLISTED, _message(unused)),))


def _blacklists_forever(job: MPIJob) -> bool:
    command = launcher_command_line(job)
    is_elastic = any(option in command for option in _ELASTIC)
    return is_elastic and "horovodrun" in command and _COOLDOWN not in command


def _back(seen: Observed, began: datetime) -> list[int]:
    """The workers that run again after they were lost while the launcher ran."""
    counts = stored_counts(seen.config_map)
    return [
        index
        for index in sorted(seen.running_hosts)
        if (index in counts and counts[index].at >= began) or _restarted(seen.workers[index], began)
    ]


def _restarted(worker: Pod, began: datetime) -> bool:
    """Whether the node has started a container of a worker again."""
    ended = pod_state.last_restart(worker)
    return ended is not None and ended >= began


def _message(unused: list[str]) -> str:
    first, *others = unused
    more = f" (and {len(others)} more)" if others else ""
    # The option comes early: where there is little room, a message is cut.
    return (
        f"Worker {first}{more} came back but is probably unused: horovodrun needs {_SETTING} to "
        "use a host again after a rank failed on it"
    )
