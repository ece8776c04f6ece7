"""How many ranks a launcher asks its MPI for, as far as its command line shows.

Only to permit more of them than the job has slots, which is harmless where it was misread: the
option of another program changes nothing about where ranks run.
"""

import re

from mpi_operator.api import MPIJob
from mpi_operator.api.main_container import launcher_command_line

_OPTION = re.compile(r"(?<!\S)--?np?[\s=]+(\d+)(?!\S)")


def exceed_slots(job: MPIJob) -> bool:
    """Whether there are fewer slots than ranks."""
    asked = _OPTION.search(launcher_command_line(job))
    return asked is not None and int(asked[1]) > slots(job)


def slots(job: MPIJob) -> int:
    """How many ranks the hosts of a job have room for."""
    hosts = job.spec.worker_count + job.spec.run_launcher_as_worker
    return hosts * job.spec.slots_per_worker
