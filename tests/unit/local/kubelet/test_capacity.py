"""Which pods fit on the machine."""

from contextlib import nullcontext
from fractions import Fraction

import pytest

from mpi_operator.kube.resources import Key
from mpi_operator.local.kubelet.allocator import Allocation, Allocator, Group, Holding
from mpi_operator.local.kubelet.capacity import GPU, Machine, requested
from mpi_operator.local.kubelet.downward_api import quantity
from tests.unit.local.kubelet.manifests import make_container, make_pod

MACHINE = Machine(Fraction(4), Fraction(8 * 2**30), lambda: ("0", "1"))


def asking(**requests):
    return make_container(resources={"requests": requests})


@pytest.mark.parametrize(
    ("text", "value"),
    [("500m", Fraction(1, 2)), ("2Gi", 2**31), ("1e3", 1000), (2, 2), ("1.5", Fraction(3, 2))],
)
def test_amounts(text, value):
    assert quantity(text) == value


def test_nonsense_is_no_amount():
    with pytest.raises(ValueError, match="'lots' is not a quantity"):
        quantity("lots")


def test_containers_are_summed_and_init_containers_are_not():
    pod = make_pod(
        containers=[asking(cpu="1"), asking(cpu="500m")],
        initContainers=[asking(cpu="1", memory="1Gi")],
    )
    assert requested(pod) == {"cpu": Fraction(3, 2), "memory": 2**30}


def test_limits_are_requests_where_there_are_none():
    pod = make_pod(containers=[make_container(resources={"limits": {GPU: 1}})])
    assert requested(pod) == {GPU: 1}


def test_allocated_resources_are_not_free():
    allocator = Allocator(MACHINE)
    assert isinstance(allocator.allocate(Key("a", "1"), {"cpu": Fraction(3)}), Allocation)
    refused = allocator.allocate(Key("a", "2"), {"cpu": Fraction(2)})
    assert refused == (
        "0/1 nodes are available: Insufficient cpu: the pod requests 2,"
        " this machine has 4 CPUs (3 in use)"
    )
    allocator.release(Key("a", "1"))
    assert isinstance(allocator.allocate(Key("a", "2"), {"cpu": Fraction(2)}), Allocation)


def test_oversubscription_is_for_cpus_and_memory():
    allocator = Allocator(MACHINE, oversubscribe=True)
    assert isinstance(allocator.allocate(Key("a", "1"), {"cpu": Fraction(99)}), Allocation)
    assert isinstance(allocator.allocate(Key("a", "2"), {GPU: Fraction(3)}), str)


def test_each_pod_gets_its_own_gpus():
    allocator = Allocator(MACHINE)
    allocations = [allocator.allocate(Key("a", name), {GPU: Fraction(1)}) for name in "12"]
    assert [each.gpus for each in allocations if isinstance(each, Allocation)] == [("0",), ("1",)]
    refused = allocator.allocate(Key("a", "3"), {GPU: Fraction(1)})
    assert "Insufficient nvidia.com/gpu" in str(refused)


def test_gpus_are_not_listed_unless_requested():
    def look() -> tuple[str, ...]:
        raise AssertionError("that takes a second")

    allocator = Allocator(Machine(Fraction(4), Fraction(2**30), look))
    assert isinstance(allocator.allocate(Key("a", "1"), {"cpu": Fraction(1)}), Allocation)


# --- groups of pods, and other runs


class Others:
    """A ledger with what other runs hold."""

    def __init__(self, *held):
        self.held = held
        self.written = Holding({})

    def exclusive(self):
        return nullcontext()

    def others(self):
        return self.held

    def write(self, holding):
        self.written = holding


def cpus(count):
    return {"cpu": Fraction(count)}


def test_what_another_run_holds_is_not_free_and_the_run_is_named():
    others = Others(Holding(cpus(3), ["0"], ["train"], "12-ab"))
    allocator = Allocator(MACHINE, ledger=others)
    assert allocator.allocate(Key("a", "1"), cpus(2)) == (
        "0/1 nodes are available: Insufficient cpu: the pod requests 2, this machine has 4 CPUs"
        " (3 held by train in run 12-ab)"
    )
    found = allocator.allocate(Key("a", "2"), {GPU: Fraction(1)})
    assert isinstance(found, Allocation)
    assert found.gpus == ("1",)
    others.held = ()
    assert isinstance(allocator.allocate(Key("a", "1"), cpus(2)), Allocation)


def test_no_pod_of_a_group_starts_before_all_fit():
    others = Others(Holding(cpus(2), (), ["train"], "12-ab"))
    allocator = Allocator(MACHINE, ledger=others)
    group = Group("pi", cpus(3))
    refused = allocator.allocate(Key("a", "1"), cpus(1), group)
    assert "the job needs 3, this machine has 4 CPUs (2 held by train in run 12-ab)" in str(refused)
    assert others.written == Holding({})
    others.held = ()
    assert isinstance(allocator.allocate(Key("a", "1"), cpus(1), group), Allocation)
    assert others.written == Holding(cpus(3), [], ["pi"])


def test_a_launcher_that_requests_nothing_waits_for_its_workers():
    others = Others(Holding(cpus(2), (), ["train"], "12-ab"))
    allocator = Allocator(MACHINE, ledger=others)
    group = Group("pi", cpus(3))
    refused = allocator.allocate(Key("a", "launcher"), {}, group)
    assert "the job needs 3, this machine has 4 CPUs (2 held by train in run 12-ab)" in str(refused)
    others.held = ()
    assert isinstance(allocator.allocate(Key("a", "launcher"), {}, group), Allocation)
    assert others.written == Holding(cpus(3), [], ["pi"])
    assert isinstance(allocator.allocate(Key("a", "worker"), cpus(3), group), Allocation)
    for name in ("worker", "launcher"):
        allocator.release(Key("a", name))
    assert others.written.amounts == {}


def test_a_group_holds_its_place_until_all_pods_have_started():
    others = Others()
    allocator = Allocator(MACHINE, ledger=others)
    group = Group("pi", cpus(3))
    allocator.allocate(Key("a", "1"), cpus(1), group)
    assert isinstance(allocator.allocate(Key("b", "1"), cpus(2), Group("q", cpus(2))), str)
    for name in "23":
        assert isinstance(allocator.allocate(Key("a", name), cpus(1), group), Allocation)
    allocator.release(Key("a", "1"))
    assert others.written.amounts == cpus(2)  # all have started, so one that ends frees its part
    for name in "23":
        allocator.release(Key("a", name))
    assert others.written == Holding({}, [], [])
    assert isinstance(allocator.allocate(Key("b", "1"), cpus(2), Group("q", cpus(2))), Allocation)


def test_pods_without_requests_do_not_read_the_ledger():
    class Unread(Others):
        def exclusive(self):
            raise AssertionError("that takes time")

    allocator = Allocator(MACHINE, ledger=Unread())
    assert isinstance(allocator.allocate(Key("a", "1"), {}), Allocation)
    allocator.release(Key("a", "1"))
