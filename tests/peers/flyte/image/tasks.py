"""The tasks of the tests, as users of Flyte write them."""

import os
import socket
import time
from typing import Any

from flytekit import Resources, task
from flytekitplugins.kfmpi import HorovodJob, Launcher, MPIJob, RestartPolicy, RunPolicy, Worker

# Flyte limits a container to what it requests, unless told otherwise.
SMALL: dict[str, Any] = {
    "requests": Resources(cpu="20m", mem="100Mi"),
    "limits": Resources(cpu="2", mem="1Gi"),
}


def job(*, launch: list[str] | None = None, restart: Any = None, **options: Any) -> MPIJob:
    """Two workers; `launch` is what the launcher runs instead of the task."""
    launcher = Launcher(replicas=1, command=launch, restart_policy=restart)
    return MPIJob(launcher=launcher, worker=Worker(replicas=2), **options)


def say_rank(rank: int | str, size: int | str) -> None:
    print(f"rank {rank} of {size} on {socket.gethostname()}", flush=True)
    time.sleep(5)  # as long as even a busy Flyte takes to look twice


def meet() -> None:
    """Every rank hears of every other one."""
    from mpi4py import MPI  # noqa: PLC0415 - only the image has an MPI

    world = MPI.COMM_WORLD
    say_rank(world.rank, world.allreduce(1))


@task(task_config=job(), **SMALL)
def two_ranks() -> None:
    meet()


# Flyte sends four ranks to a job that has a slot on each of two workers.
@task(task_config=job(slots=2), **SMALL)
def two_slots() -> None:
    meet()


# Otherwise flytekit exits with 0, and leaves the error in the object store.
@task(task_config=job(), environment={"FLYTE_FAIL_ON_ERROR": "true"}, **SMALL)
def fails() -> None:
    meet()
    raise RuntimeError("the model diverged")


@task(task_config=job(launch=["true"]), **SMALL)
def ends_at_once() -> None:
    pass


@task(task_config=job(launch=["false"]), **SMALL)
def fails_at_once() -> None:
    pass


# This directory outlives the container.
ONCE = ["sh", "-c", "cat /opt/kube/failed || { touch /opt/kube/failed; exit 1; }"]


@task(task_config=job(launch=ONCE, restart=RestartPolicy.FAILURE), **SMALL)
def fails_once() -> None:
    pass


# As the first process of its container, a sleep would not end before it is killed.
@task(task_config=job(launch=["sh", "-c", "trap exit TERM; sleep 3600 & wait"]), **SMALL)
def lasts() -> None:
    pass


@task(task_config=job(), requests=Resources(cpu="1000"), limits=Resources(cpu="1000"))
def fits_nowhere() -> None:
    pass


@task(task_config=job(run_policy=RunPolicy(ttl_seconds_after_finished=-1)), **SMALL)
def is_wrong() -> None:
    pass


@task(task_config=HorovodJob(launcher=Launcher(replicas=1), worker=Worker(replicas=2)), **SMALL)
def elastic() -> None:
    say_rank(os.environ["HOROVOD_RANK"], os.environ["HOROVOD_SIZE"])
