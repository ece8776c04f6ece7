import random
import socket

import pytest

from devcluster import ports


def test_a_free_port_can_be_listened_on():
    with socket.create_server(("127.0.0.1", ports.free_port())) as server:
        assert not ports.is_free(server.getsockname()[1])


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.2", ""])
def test_a_port_is_taken_if_a_server_listens_at_any_address(address):
    with socket.create_server((address, 0)) as server:
        assert not ports.is_free(server.getsockname()[1])


def test_ports_stay_clear_of_outgoing_connections_and_node_ports():
    assert all(20000 <= ports.free_port() < 30000 for _ in range(20))


def test_two_processes_with_the_same_seed_do_not_meet():
    def three() -> list[int]:
        random.seed(1)
        return [ports.free_port() for _ in range(3)]

    assert three() != three()
