from ipaddress import IPv4Network

import pytest

from devcluster import slots
from devcluster.network import MAX_NODES, Network


@pytest.fixture(autouse=True)
def _of_our_own(home, monkeypatch):
    """Neither the claims nor the routes of this machine matter here."""
    monkeypatch.setattr(slots, "DIRECTORY", home / "slots")
    monkeypatch.setattr(slots, "_used_ranges", lambda: [IPv4Network("192.0.2.0/24")])


def run(home, name):
    directory = home / name
    directory.mkdir()
    return directory


def never(slot):
    raise AssertionError(f"slot {slot} had nothing to be cleared")


def test_every_cluster_has_a_slot_of_its_own(home):
    first, second = run(home, "first"), run(home, "second")
    assert [slots.claim(each, never) for each in (first, second)] == [0, 1]
    assert (slots.of(first), slots.of(second)) == ([0], [1])


def test_a_released_slot_is_free(home):
    first = run(home, "first")
    slots.release(slots.claim(first, never))
    assert slots.of(first) == []
    assert slots.claim(run(home, "second"), never) == 0


def test_a_claim_without_its_directory_is_void_and_what_it_left_is_cleared(home):
    first = run(home, "first")
    cleared: list[int] = []
    slots.claim(first, never)
    first.rmdir()
    assert not slots.is_claimed(0)
    assert slots.claim(run(home, "second"), cleared.append) == 0
    assert cleared == [0]


def test_a_range_that_the_machine_uses_for_something_else_is_passed_over(home, monkeypatch):
    monkeypatch.setattr(slots, "_used_ranges", lambda: [IPv4Network("10.231.7.0/24")])
    assert slots.claim(run(home, "first"), never) == 1


def test_no_free_range_is_an_error(home, monkeypatch):
    monkeypatch.setattr(slots, "_used_ranges", lambda: [IPv4Network("10.0.0.0/8")])
    with pytest.raises(slots.NoSlot, match=r"10\.231\.0\.0/16"):
        slots.claim(run(home, "first"), never)


def test_the_addresses_of_a_cluster_lie_in_its_range_and_are_all_different():
    network = Network(3)
    whole = IPv4Network(network.range)
    pods = [IPv4Network(network.pod_range(node)) for node in range(MAX_NODES)]
    nodes = [network.host_address, *(network.node_address(node) for node in range(MAX_NODES))]
    ranges = [*pods, *(IPv4Network(address) for address in nodes)]
    assert all(each.subnet_of(whole) for each in ranges)
    assert not any(
        one.overlaps(other) for number, one in enumerate(ranges) for other in ranges[:number]
    )


def test_names_of_links_fit_into_the_kernel():
    assert len(Network(slots.COUNT - 1).link(MAX_NODES - 1)) <= 15
