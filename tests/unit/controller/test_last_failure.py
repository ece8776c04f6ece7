"""How a launcher failed last is known when its pod is gone, and costs few writes."""

from mpi_operator.api.annotations import LAUNCHER_LAST_FAILURE
from mpi_operator.build.scripts import Event
from mpi_operator.controller.cached_types import MPI_JOBS
from mpi_operator.kube.resources import JOBS, PODS, Key
from tests.support.faulty_client import refused
from tests.support.observations import failed, remote_shell_line, terminated
from tests.support.worlds import message_of, running_world

LAUNCHER = Key("lab", "pi-launcher")


def ends(world, code, words=""):
    ended = {"phase": "Running", "containerStatuses": terminated(code, words)}
    world.cluster.patch_status(PODS, world.launcher_pod, ended)


def disappears(world):
    world.cluster.remove(PODS, world.launcher_pod)
    world.cluster.patch_status(JOBS, LAUNCHER, failed())


def test_an_invalid_job_reports_how_its_launcher_failed():
    world = running_world(rules=False, policy={"backoffLimit": 0})
    world.cluster.patch(MPI_JOBS, world.key, {"spec": {"slotsPerWorker": -1}})
    world.settle()
    ends(world, 139, "segmentation fault")
    world.settle()
    disappears(world)
    world.settle()
    assert message_of(world, "Failed").endswith("(exit code 139): segmentation fault")


def test_a_failure_that_cannot_be_stored_is_reported():
    world = running_world(policy={"backoffLimit": 0})
    world.client.refuse("patch ConfigMap", refused(403, "denied"))
    ends(world, 139, "segmentation fault")
    world.reconcile()
    disappears(world)
    world.reconcile()
    world.reconcile()
    assert message_of(world, "Failed").endswith("(exit code 139): segmentation fault")


def test_an_event_of_the_remote_shell_is_stored_before_other_output():
    gave_up = remote_shell_line(Event.GAVE_UP, "pi-worker-1", 600, "Connection refused")
    world = running_world(policy={"backoffLimit": 0})
    ends(world, 1, "x" * 2000 + f"\n{gave_up}\nmpirun: failed")
    world.settle()
    world.restart()
    disappears(world)
    world.settle()
    assert message_of(world, "Failed").startswith("Launcher gave up on pi-worker-1 after 600s")


def test_a_launcher_that_was_suspended_has_not_failed():
    world = running_world()
    world.pass_time(5)
    before = world.launcher_pod
    world.suspend()
    world.settle()
    world._jobs.act()
    world.resume()
    ended = {"phase": "Running", "containerStatuses": terminated(143)}
    world.cluster.patch_status(PODS, before, ended)
    world.settle()
    assert LAUNCHER_LAST_FAILURE not in world.config_map["metadata"].get("annotations", {})
