"""Which pods fit on the machine."""

from fractions import Fraction

import pytest

from mpi_operator.kube.resources import Key
from mpi_operator.local.kubelet.capacity import GPU, Allocation, Allocator, Machine, requested
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
