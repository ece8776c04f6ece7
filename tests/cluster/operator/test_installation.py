"""The installed operator: its pods, nodes, users, probes and disruption budget."""

import pytest

from mpi_operator.kube.resources import Manifest
from tests.cluster.operator.installation import Installation

# Asked in the container itself: a manifest only tells what is meant.
WHO_AND_WHERE = "import os; print(os.getuid(), bool(os.statvfs('/').f_flag & os.ST_RDONLY))"


@pytest.fixture
def pods(installation: Installation) -> list[Manifest]:
    installation.wait()
    return installation.pods()


def test_two_pods_are_ready_on_two_nodes(pods: list[Manifest]) -> None:
    assert [_is_ready(pod) for pod in pods] == [True, True]
    assert {pod["spec"]["nodeName"] for pod in pods} == {"node-0", "node-1"}


def test_it_is_not_root_and_cannot_write_to_its_root_file_system(
    installation: Installation, pods: list[Manifest]
) -> None:
    for pod in pods:
        uid, is_read_only = installation.run(_name(pod), "python", "-c", WHO_AND_WHERE).split()
        assert int(uid) > 0
        assert is_read_only == "True"


@pytest.mark.parametrize("probe", ["livenessProbe", "readinessProbe"])
def test_what_the_probes_ask_is_answered(
    installation: Installation, pods: list[Manifest], probe: str
) -> None:
    for pod in pods:
        [container] = pod["spec"]["containers"]
        assert installation.ask(_name(pod), container[probe]["httpGet"]["path"]) == "ok\n"


def test_it_says_what_it_needs_and_how_much_it_may_take(pods: list[Manifest]) -> None:
    for pod in pods:
        [container] = pod["spec"]["containers"]
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
        assert container["resources"]["limits"].keys() == {"memory"}


def _is_ready(pod: Manifest) -> bool:
    conditions = [(each["type"], each["status"]) for each in pod["status"]["conditions"]]
    return ("Ready", "True") in conditions


def _name(pod: Manifest) -> str:
    return str(pod["metadata"]["name"])
