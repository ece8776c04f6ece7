"""Properties that hold for every job, whatever happens to it (hypothesis)."""

from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mpi_operator.api import annotations, conditions
from mpi_operator.api.profiles import PROFILES
from mpi_operator.api.types import VERSION
from mpi_operator.controller.actions import Create
from mpi_operator.controller.cached_types import MPI_JOBS
from mpi_operator.kube.resources import CONFIG_MAPS, JOBS, PODS, SERVICES
from tests.support.observations import PLUGINS, VOLCANO
from tests.support.worlds import World, running_world

pytestmark = pytest.mark.exhaustive

EXAMPLES = settings(max_examples=30)
LIMIT = 2  # replacements of one worker


class Step(NamedTuple):
    """Something that happens: a method of a world and its arguments."""

    name: str
    arguments: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        return f"{self.name}{self.arguments}"


def happen(world, steps):
    for step in steps:
        getattr(world, step.name)(*step.arguments)
    return world


def steps(*names, **values):
    plain = [st.just(Step(name)) for name in names]
    given = [st.builds(lambda x, n=n: Step(n, (x,)), v) for n, v in values.items()]
    return st.one_of(*plain, *given)


INDEXES = st.integers(0, 3)
WORKERS = {
    "worker_runs": INDEXES,
    "worker_fails": INDEXES,
    "worker_is_evicted": INDEXES,
    "worker_vanishes": INDEXES,
    "worker_is_drained": INDEXES,
}
TIME = {"pass_time": st.sampled_from([0.3, 1, 5, 40, 600])}
LAUNCHER = ("launcher_runs", "launcher_pod_fails")
ENDS = ("launcher_pod_succeeds", "launcher_completes", "launcher_fails")
SPEC = ("suspend", "resume")
CLUSTER = ("kubernetes_acts", "all_workers_run", "reconcile", "settle")

any_step = steps(*LAUNCHER, *ENDS, *SPEC, *CLUSTER, **WORKERS, **TIME, scale=st.integers(1, 4))
anything = st.lists(any_step, max_size=25)
without_an_end = st.lists(
    steps(*LAUNCHER, *SPEC, *CLUSTER, **WORKERS, **TIME, scale=st.integers(1, 4)), max_size=25
)
jobs = st.fixed_dictionaries(
    {
        "workers": st.integers(1, 3),
        "policy": st.fixed_dictionaries(
            {
                "backoffLimit": st.just(LIMIT),
                "suspend": st.booleans(),
                "cleanPodPolicy": st.sampled_from(["None", "Running", "All"]),
            },
            optional={"ttlSecondsAfterFinished": st.sampled_from([0, 100])},
        ),
        "launcherCreationPolicy": st.sampled_from(["AtStartup", "WaitForWorkersReady"]),
        "runLauncherAsWorker": st.booleans(),
        "mpiImplementation": st.sampled_from(["OpenMPI", "MPICH"]),
    },
    optional={
        "settings": st.sampled_from([VOLCANO, PLUGINS]),
        "annotations": st.fixed_dictionaries(
            {},
            optional={
                annotations.WRITTEN_IN: st.sampled_from([*PROFILES]),
                annotations.LAUNCHER_RESTART_POLICY: st.just("ExitCode"),
                annotations.WORKER_RESTART_POLICY: st.sampled_from(["Always", "ExitCode"]),
                annotations.LOST_WORKERS: st.just("fail"),
            },
        ),
    },
).filter(lambda job: not deletes_itself(job))  # there would be no job to ask about


def deletes_itself(job):
    written_in = job.get("annotations", {}).get(annotations.WRITTEN_IN, VERSION)
    return "ttlSecondsAfterFinished" in job["policy"] and PROFILES[written_in].ttl_deletes_job


@EXAMPLES
@given(jobs, anything)
def test_a_settled_world_is_left_alone(job, history):
    world = happen(World(**job), history).settle()
    before = world.snapshot()
    assert world.reconcile()[0] == []
    assert world.snapshot() == before


@EXAMPLES
@given(jobs, anything)
def test_every_world_comes_to_rest(job, history):
    world = happen(World(**job), history).rest()
    before = world.snapshot()
    world.kubernetes_acts()
    assert world.settle().snapshot() == before


@EXAMPLES
@given(jobs, anything)
def test_executing_a_plan_twice_is_the_same_as_once(job, history):
    world = happen(World(**job), history)
    plan, known = world.plan(), world.job
    world.execute(known, plan)
    before = world.snapshot()
    world.restart()  # else it knows what it has deleted
    world.execute(known, plan)
    assert world.snapshot() == before


@EXAMPLES
@given(jobs, anything, st.lists(st.one_of(any_step, st.just(Step("restart"))), max_size=25))
def test_a_finished_job_never_creates_anything_and_stays_finished(job, history, later_history):
    world = happen(World(**job), history).settle()
    world.resume()
    for _ in range(LIMIT + 2):  # a launcher that lost a worker is tried again
        world.pass_time(10)
        world.rest()
        world.all_workers_run()
        world.rest()
        world.launcher_completes()
        world.rest()
    assert conditions.is_finished(world.job.status.conditions)
    made, status = len(world.created), world.job.status
    happen(world, later_history).rest()
    assert world.created[made:] == []
    # The observed generation may change; nothing else of the status may.
    observed = world.job.status.observed_generation
    assert world.job.status == replace(status, observed_generation=observed)


@EXAMPLES
@given(jobs, anything)
def test_objects_of_other_owners_are_not_touched(job, history):
    world = World(**job)
    foreign = {
        (PODS, "pi-worker-9"): {"training.kubeflow.org/job-role": "worker"},
        (PODS, "sidecar"): {"training.kubeflow.org/job-role": "worker"},
        (SERVICES, "pi-extra"): {},
        (CONFIG_MAPS, "other-config"): {},
        (JOBS, "other-launcher"): {},
    }
    for (resource, name), labels in foreign.items():
        world.cluster.create(resource, a_foreign_object(name, labels))
    before = {item: found for item, found in world.objects().items() if item[0] != MPI_JOBS}
    happen(world, history).rest()
    after = world.objects()
    assert {item: after.get(item) for item in before} == before


def a_foreign_object(name, labels):
    """An object with the labels of the job and another controller."""
    ours = {
        "training.kubeflow.org/operator-name": "mpi-operator",
        "training.kubeflow.org/job-name": "pi",
    }
    # Of a kind that the cluster does not know, so its garbage collector leaves it alone.
    owner = {
        "apiVersion": "example.com/v1",
        "kind": "Other",
        "name": "pi",
        "uid": "uid-of-another-owner",
        "controller": True,
    }
    return {
        "metadata": {
            "name": name,
            "namespace": "lab",
            "labels": ours | labels,
            "ownerReferences": [owner],
        },
        "spec": {},
    }


@EXAMPLES
@given(jobs, without_an_end, st.data())
def test_a_restart_at_any_moment_makes_no_difference(job, history, data):
    moments = data.draw(st.sets(st.integers(0, len(history)), max_size=3))
    with_restarts = [
        each
        for moment, step in enumerate(history)
        for each in ([Step("restart"), step] if moment in moments else [step])
    ]
    one = all_running(happen(World(**job), history))
    other = all_running(happen(World(**job), [*with_restarts, Step("restart")]))
    assert one.snapshot() == other.snapshot()


def all_running(world):
    """The world when everything that should run does."""
    world.resume()
    for _ in range(6):
        world.pass_time(3600)  # old replacements no longer count
        world.rest()
        world.all_workers_run()
        world.launcher_runs()
    return world.rest()


@EXAMPLES
@given(
    st.integers(1, 3),
    st.permutations(
        [
            Step("worker_runs", (0,)),
            Step("worker_runs", (1,)),
            Step("worker_runs", (2,)),
            Step("launcher_runs"),
            Step("pass_time", (0.5,)),
        ]
    ),
    st.lists(st.booleans(), min_size=5, max_size=5),
)
def test_any_order_of_starting_ends_in_the_same_world(count, order, reconciles):
    usual = World(count).settle()
    usual.all_workers_run()
    usual.launcher_runs()
    world = World(count).settle()
    for step, is_reconciled in zip(order, reconciles, strict=True):
        happen(world, [step, *[Step("reconcile")] * is_reconciled])
    assert world.rest().snapshot() == usual.rest().snapshot()


FATES = ["worker_fails", "worker_is_evicted", "worker_vanishes"]


@EXAMPLES
@given(
    st.lists(st.sampled_from(FATES), min_size=3, max_size=3).flatmap(
        lambda fates: st.tuples(
            *(
                st.permutations([Step(fate, (index,)) for index, fate in enumerate(fates)])
                for _ in range(2)
            )
        )
    ),
    st.lists(st.booleans(), min_size=3, max_size=3),
)
def test_any_order_of_losses_ends_in_the_same_world(orders, reconciles):
    one, other = (running_world(3) for _ in orders)
    happen(one, orders[0]).rest()
    for step, is_reconciled in zip(orders[1], reconciles, strict=True):
        happen(other, [step, *[Step("settle")] * is_reconciled])
    other.rest()
    for world in (one, other):
        world.all_workers_run()
    assert one.rest().snapshot() == other.rest().snapshot()


@pytest.mark.parametrize("fate", [*FATES, "worker_is_drained"])
def test_a_worker_is_replaced_up_to_the_limit(fate):
    world = running_world(2, policy={"backoffLimit": LIMIT})
    for _ in range(LIMIT + 3):
        happen(world, [Step(fate, (1,)), Step("rest"), Step("worker_runs", (1,)), Step("rest")])
    assert world.created.count((PODS, "pi-worker-1")) == 1 + LIMIT


@EXAMPLES
@given(
    st.lists(
        st.tuples(
            st.sampled_from([*FATES, "worker_is_drained"]),
            st.integers(0, 1),
            st.lists(steps("reconcile", "settle", "restart", "kubernetes_acts"), max_size=3),
        ),
        max_size=10,
    )
)
def test_however_workers_are_lost_replacements_are_bounded(losses):
    world = running_world(2, policy={"backoffLimit": LIMIT})
    for fate, index, meanwhile in losses:
        lose(world, fate, index)
        happen(world, [*meanwhile, Step("rest"), Step("worker_runs", (index,)), Step("rest")])
    for index in range(2):
        lost = sum(1 for _, each, _ in losses if each == index)
        made = world.created.count((PODS, f"pi-worker-{index}"))
        assert made == 1 + min(lost, LIMIT)


def lose(world, fate, index):
    """Lose a worker that runs. A worker at its replacement limit stays until a user deletes it."""
    if world.pods.get(f"pi-worker-{index}") == "Running":
        getattr(world, fate)(index)


@EXAMPLES
@given(
    st.lists(
        st.tuples(
            st.sampled_from([*FATES, "worker_is_drained"]),
            st.integers(0, 1),
            st.lists(steps("reconcile", "settle", "restart", "kubernetes_acts"), max_size=4),
        ),
        max_size=LIMIT + 2,
    )
)
def test_however_workers_are_lost_a_launcher_is_tried_up_to_the_limit(losses):
    needs_all = {annotations.LOST_WORKERS: "fail", annotations.MAX_WORKER_REPLACEMENTS: "9"}
    world = running_world(2, policy={"backoffLimit": LIMIT}, annotations=needs_all)
    for fate, index, meanwhile in losses:
        world.pass_time(60)
        lose(world, fate, index)
        world.launcher_completes()
        happen(world, [*meanwhile, Step("kubernetes_acts"), Step("rest")])
        world.pass_time(600)  # replacements of one worker come later and later
        happen(world, [Step("rest"), Step("all_workers_run"), Step("rest")])
        happen(world, [Step("launcher_runs"), Step("rest")])
    world.pass_time(60)
    world.launcher_completes()
    world.rest()
    end = "Failed" if len(losses) > LIMIT else "Succeeded"
    assert world.conditions.keys() & {"Failed", "Succeeded"} == {end}
    tries = 1 + min(len(losses), LIMIT)
    assert world.created.count((JOBS, "pi-launcher")) == tries
    assert len(world.launcher_pods) == tries


@EXAMPLES
@given(jobs, anything)
def test_a_plan_creates_nothing_twice(job, history):
    world = happen(World(**job), history)
    targets = [(each.resource, each.key) for each in world.plan().actions if is_creation(each)]
    assert len(targets) == len(set(targets))


def is_creation(action):
    return isinstance(action, Create)
