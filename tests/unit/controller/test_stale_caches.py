"""Caches fall behind independently. Decisions on stale caches must do no harm."""

from hypothesis import given, settings
from hypothesis import strategies as st

from mpi_operator.controller.cached_types import MPI_JOBS
from mpi_operator.kube.resources import CONFIG_MAPS, JOBS, PODS, SERVICES
from tests.support.worlds import World

KINDS = [PODS, JOBS, SERVICES, CONFIG_MAPS, MPI_JOBS]
EVENTS = [
    "all_workers_run",
    "launcher_runs",
    "launcher_pod_fails",
    "worker_fails",
    "worker_vanishes",
    "worker_is_drained",
    "kubernetes_acts",
    "suspend",
    "resume",
]
PATIENT = {"backoffLimit": 1000}

steps = st.lists(
    st.one_of(
        st.tuples(st.just("reconcile")),
        st.tuples(st.just("restart")),
        st.tuples(st.sampled_from(["freeze", "thaw"]), st.sampled_from(KINDS)),
        st.tuples(st.sampled_from(EVENTS)),
        st.tuples(st.just("scale"), st.integers(1, 3)),
    ),
    max_size=25,
)
LIVES = settings(max_examples=30)


def happen(world, life):
    for name, *arguments in life:
        do(world, name, *arguments)


def do(world, name, *arguments):
    if name.startswith("worker"):
        arguments = (0,)
    getattr(world, name)(*arguments)


def at_peace(world):
    """The caches have caught up, and everything that should run does."""
    for kind in KINDS:
        world.thaw(kind)
    world.resume()
    world.scale(2)
    for _ in range(5):
        world.pass_time(400)
        world.settle()
        world.kubernetes_acts()
        world.settle()
        world.all_workers_run()
        world.launcher_runs()
        world.settle()


@LIVES
@given(steps)
def test_a_job_gets_to_run_whatever_its_status_was(life):
    world = World(policy=PATIENT)
    happen(world, life)
    at_peace(world)
    assert world.conditions["Running"] == "True MPIJobRunning"
    assert world.pods == {"pi-worker-0": "Running", "pi-worker-1": "Running"}
    assert world.hosts == {0, 1}


@LIVES
@given(steps, steps)
def test_a_finished_job_stays_finished_whatever_its_status_was(life, afterlife):
    world = World(policy=PATIENT)
    happen(world, life)
    at_peace(world)
    world.launcher_completes()
    world.settle()
    asked = len(world.client.asked)
    happen(world, afterlife)
    assert not [
        each
        for each in world.client.requests[asked:]
        if each.verb == "create" and each.resource in (PODS, JOBS)
    ]
    assert world.conditions["Succeeded"] == "True MPIJobSucceeded"
