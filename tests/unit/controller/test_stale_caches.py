"""Caches fall behind, each in its own time. What is decided then must not be regretted later."""

import asyncio

import looptime
from hypothesis import given, settings
from hypothesis import strategies as st

from mpi_operator.kube.resources import JOBS, PODS
from tests.support.operators import Operator

KINDS = ["pods", "launchers", "services", "config_maps", "jobs"]
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
        st.tuples(st.just("look")),
        st.tuples(st.just("restart")),
        st.tuples(st.sampled_from(["freeze", "thaw"]), st.sampled_from(KINDS)),
        st.tuples(st.sampled_from(EVENTS)),
        st.tuples(st.just("scale"), st.integers(1, 3)),
    ),
    max_size=25,
)
LIVES = settings(max_examples=30)


async def happen(operator, life):
    for name, *arguments in life:
        await do(operator, name, *arguments)


async def do(operator, name, *arguments):
    world = operator.world
    if name == "look":
        await operator.look()
    elif name == "restart":
        operator.restart()
    elif name in ("freeze", "thaw"):
        getattr(getattr(operator.shelves, arguments[0]), name)()
    elif name.startswith("worker"):
        getattr(world, name)(0)
    else:
        getattr(world, name)(*arguments)


async def at_peace(operator):
    """The caches have caught up, and everything that should run does."""
    for shelf in operator.shelves:
        shelf.thaw()
    operator.world.resume()
    operator.world.scale(2)
    for _ in range(5):
        operator.world.pass_time(400)
        await operator.settle()
        operator.world.kubernetes_acts()
        await operator.settle()
        operator.world.all_workers_run()
        operator.world.launcher_runs()
        await operator.settle()


@LIVES
@given(steps)
def test_a_job_comes_to_run_whatever_was_known_of_it(life):
    async def live():
        operator = Operator(policy=PATIENT)
        await happen(operator, life)
        await at_peace(operator)
        assert operator.world.conditions["Running"] == "True MPIJobRunning"
        assert operator.world.pods == {"pi-worker-0": "Running", "pi-worker-1": "Running"}
        assert operator.world.hosts == {0, 1}

    run(live())


@LIVES
@given(steps, steps)
def test_a_job_that_has_ended_stays_so_whatever_is_known_of_it(life, afterlife):
    async def live():
        operator = Operator(policy=PATIENT)
        await happen(operator, life)
        await at_peace(operator)
        operator.world.launcher_completes()
        await operator.settle()
        asked = len(operator.client.asked)
        await happen(operator, afterlife)
        assert not [
            each
            for each in operator.client.requests[asked:]
            if each.verb == "create" and each.resource in (PODS, JOBS)
        ]
        assert operator.world.conditions["Succeeded"] == "True MPIJobSucceeded"

    run(live())


def run(life):
    """In virtual time, and in a loop of its own."""
    with asyncio.Runner(loop_factory=looptime.new_event_loop) as runner:
        return runner.run(life)
