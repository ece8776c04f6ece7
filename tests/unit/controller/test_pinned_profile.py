"""What a job does must not change while it runs, although its annotations can."""

import pytest
from msgspec.structs import replace

from mpi_operator.api.launcher_transport import Transport, transport
from mpi_operator.api.profiles import profile
from mpi_operator.controller.cached_types import MPI_JOBS
from mpi_operator.controller.pinned_profile import pinned
from mpi_operator.kube.resources import CONFIG_MAPS, Key
from tests.support.observations import a_config_map, a_job
from tests.support.worlds import World, running_world

WRITTEN_IN = "mpi-operator.kubeflow.org/written-in"
TRANSPORT = "mpi-operator.kubeflow.org/transport"
PROFILE = "mpi-operator.kubeflow.org/profile"


def notes(world):
    return world.config_map["metadata"].get("annotations", {})


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        pytest.param({}, None, id="v2beta1: there is nothing to remember"),
        pytest.param({WRITTEN_IN: "v2beta1"}, None, id="v2beta1, where it says so"),
        pytest.param({WRITTEN_IN: "v1"}, "v1", id="v1"),
        pytest.param({WRITTEN_IN: "v1alpha1"}, "v1alpha1", id="v1alpha1"),
        pytest.param({WRITTEN_IN: "v9"}, None, id="an unknown version is none"),
    ],
)
def test_what_the_config_map_stores(given, stored):
    world = World(annotations=given | {TRANSPORT: "ssh"})
    before = World().reconcile()[0]
    assert world.reconcile()[0] == before  # no request more
    assert notes(world).get(PROFILE) == stored


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        pytest.param({}, None, id="v2beta1 uses ssh"),
        pytest.param({TRANSPORT: "exec"}, "exec", id="v2beta1 with exec"),
        pytest.param({WRITTEN_IN: "v1"}, None, id="v1 uses exec"),
        pytest.param({WRITTEN_IN: "v1", TRANSPORT: "ssh"}, "ssh", id="v1 with ssh"),
        pytest.param({TRANSPORT: "rsh"}, None, id="an unknown transport is none"),
    ],
)
def test_a_transport_is_stored_where_the_version_has_another(given, stored):
    world = World(annotations=given)
    world.reconcile()
    assert notes(world).get(TRANSPORT) == stored


@pytest.mark.parametrize(
    ("given", "stored", "way"),
    [
        pytest.param({TRANSPORT: "exec"}, {}, Transport.SSH, id="set when the job had begun"),
        pytest.param({}, {TRANSPORT: "exec"}, Transport.EXEC, id="removed"),
        pytest.param({TRANSPORT: "ssh"}, {TRANSPORT: "exec"}, Transport.EXEC, id="edited"),
        pytest.param({TRANSPORT: "ssh"}, {PROFILE: "v1"}, Transport.EXEC, id="edited in v1"),
        pytest.param(
            {TRANSPORT: "exec"}, {TRANSPORT: "x"}, Transport.SSH, id="an unknown stored value"
        ),
    ],
)
def test_the_stored_transport_wins(given, stored, way):
    job = a_job(annotations=given)
    found = a_config_map(job)
    found = replace(found, metadata=replace(found.metadata, annotations=stored))
    assert transport(pinned(job, found)) is way


@pytest.mark.parametrize(
    ("given", "stored", "version"),
    [
        pytest.param({}, {}, "v2beta1", id="neither"),
        pytest.param({WRITTEN_IN: "v1"}, {}, "v2beta1", id="a job of v2beta1, edited"),
        pytest.param({WRITTEN_IN: "v2beta1"}, {PROFILE: "v1"}, "v1", id="edited"),
        pytest.param({}, {PROFILE: "v1"}, "v1", id="removed"),
        pytest.param({WRITTEN_IN: "v1"}, {PROFILE: "v9"}, "v1", id="an unknown stored version"),
    ],
)
def test_the_stored_version_wins(given, stored, version):
    job = a_job(annotations=given)
    found = a_config_map(job)
    found = replace(found, metadata=replace(found.metadata, annotations=stored))
    assert profile(pinned(job, found)).version == version


@pytest.mark.parametrize("left", [{"app": "pi"}, {}], ids=["the Go operator's", "anybody's"])
def test_a_config_map_of_another_operator_says_nothing(left):
    job = a_job(annotations={WRITTEN_IN: "v1"})
    found = a_config_map(job)
    found = replace(found, metadata=replace(found.metadata, labels=left))
    assert profile(pinned(job, found)).version == "v1"


def test_a_job_of_v1_that_another_operator_began_keeps_its_version_when_it_is_adopted():
    world = World(annotations={WRITTEN_IN: "v1"})
    world.reconcile()
    left = {"metadata": {"labels": None, "annotations": None}}
    world.cluster.patch(CONFIG_MAPS, Key("lab", "pi-config"), left)
    world.restart()
    world.rest()
    assert notes(world)[PROFILE] == "v1"
    assert world.config_map["metadata"]["labels"]["training.kubeflow.org/job-name"] == "pi"


def test_a_job_that_was_never_seen_has_its_own_version():
    job = a_job(annotations={WRITTEN_IN: "v1"})
    assert pinned(job, None) is job


@pytest.mark.parametrize(
    ("given", "edited", "fails"),
    [
        pytest.param("v1", None, True, id="removed from a job of v1"),
        pytest.param("v1", "v2beta1", True, id="changed in a job of v1"),
        pytest.param("v2beta1", "v1", False, id="added to a job of v2beta1"),
    ],
)
def test_an_edit_changes_neither_a_running_job_nor_its_objects(given, edited, fails):
    world = running_world(annotations={WRITTEN_IN: given} if given != "v2beta1" else {})
    before = world.rest().snapshot()
    edit = {"metadata": {"annotations": {WRITTEN_IN: edited}}}
    world.cluster.patch(MPI_JOBS, world.key, edit)
    world.restart()
    after = world.rest().snapshot()
    assert {k: v for k, v in after.items() if k != "MPIJob pi"} == {
        k: v for k, v in before.items() if k != "MPIJob pi"
    }
    world.worker_fails(0)
    world.rest()
    assert ("True WorkerFailed" in world.conditions.values()) == fails


@pytest.mark.parametrize(
    ("given", "edited", "stored"),
    [("v1", "v1", "v1"), ("v1", None, "v1"), ("v2beta1", "v1", None)],
    ids=["a job of v1", "a job of v1, edited", "a job of v2beta1, edited"],
)
def test_a_change_of_the_hosts_keeps_it(given, edited, stored):
    world = running_world(annotations={WRITTEN_IN: given})
    world.cluster.patch(MPI_JOBS, world.key, {"metadata": {"annotations": {WRITTEN_IN: edited}}})
    world.scale(3)
    world.rest()
    world.all_workers_run()
    world.rest()
    assert notes(world).get(PROFILE) == stored
