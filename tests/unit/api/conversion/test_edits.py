"""What an edit in one version does to what was kept for another."""

import pytest

from mpi_operator.api import annotations as names
from mpi_operator.api.conversion import UnitSettings, convert
from mpi_operator.api.conversion.places import ABSENT
from tests.unit.api.conversion.jobs import LAUNCHER, WORKER, at, edited, job, template, with_roles

FIRST = f"{WORKER}.template.spec.containers.0"
CONTAINERS = f"{WORKER}.template.spec.containers"
OWN_FIRST = "spec.template.spec.containers.0"


@pytest.mark.parametrize(
    ("version", "written", "edit", "seen"),
    [
        pytest.param(
            "v1",
            {"spec.cleanPodPolicy": "All"},
            {"spec.runPolicy.cleanPodPolicy": "Running"},
            {"spec.cleanPodPolicy": "Running"},
            id="a clean pod policy",
        ),
        pytest.param(
            "v1",
            {"spec.runPolicy": {"cleanPodPolicy": "All"}},
            {"spec.runPolicy.suspend": True},
            {"spec.runPolicy": {"cleanPodPolicy": "All", "suspend": True}},
            id="suspending a job leaves the rest of its run policy alone",
        ),
        pytest.param(
            "v1",
            {"spec.slotsPerWorker": 1},
            {f"{WORKER}.replicas": 7},
            {f"{WORKER}.replicas": 7, "spec.slotsPerWorker": 1, "spec.runPolicy": ABSENT},
            id="replicas",
        ),
        pytest.param(
            "v1",
            {f"{LAUNCHER}.restartPolicy": "Always"},
            {f"{LAUNCHER}.restartPolicy": "Never", "spec.runPolicy.backoffLimit": 2},
            {f"{LAUNCHER}.restartPolicy": ABSENT, "spec.runPolicy.backoffLimit": 2},
            id="a restart policy",
        ),
        pytest.param(
            "v1",
            {f"{FIRST}.args": ["mpirun"]},
            {f"{FIRST}.command": ["sshd"]},
            {f"{FIRST}.command": ["sshd"], f"{FIRST}.args": ABSENT},
            id="a command makes the arguments of workers obsolete",
        ),
        pytest.param(
            "v1",
            {CONTAINERS: [{"name": "a"}, {"name": "b", "args": ["c"]}], "spec.mainContainer": "b"},
            {f"{CONTAINERS}.1.command": ["sshd"]},
            {f"{CONTAINERS}.1.command": ["sshd"], f"{CONTAINERS}.1.args": ABSENT},
            id="also of workers whose main container is not the first",
        ),
        pytest.param(
            "v1",
            {CONTAINERS: [{"name": "a"}, {"name": "b", "args": ["c"]}], "spec.mainContainer": "b"},
            {f"{CONTAINERS}.0.command": ["sshd"]},
            {f"{CONTAINERS}.0.command": ["sshd"], f"{CONTAINERS}.1.args": ["c"]},
            id="but not the command of another container",
        ),
        pytest.param(
            "v1alpha2",
            {"spec.backoffLimit": 3, "spec.runPolicy.backoffLimit": 1},
            {"spec.runPolicy.backoffLimit": 5},
            {"spec.backoffLimit": 5, "spec.runPolicy.backoffLimit": ABSENT},
            id="a limit that was given twice",
        ),
        pytest.param(
            "v1alpha2",
            {"spec.mpiDistribution": "IntelMPI"},
            {"spec.mpiImplementation": "MPICH"},
            {"spec.mpiDistribution": "MPICH"},
            id="an implementation",
        ),
    ],
)
def test_an_edit_in_the_hub_wins(version, written, edit, seen):
    hub = edited(convert(edited(with_roles(version), written), "v2beta1"), edit)
    shown = convert(hub, version)
    assert {place: at(shown, place) for place in seen} == seen
    assert convert(shown, "v2beta1")["spec"] == hub["spec"]


class TestTotals:
    hub = convert(job("v1alpha1", gpus=16, template=template()), "v2beta1", UnitSettings(8))

    def test_a_total_of_gpus_ends_with_an_edit_of_the_workers(self):
        shown = convert(edited(self.hub, {f"{WORKER}.replicas": 3}), "v1alpha1")
        assert (at(shown, "spec.gpus"), at(shown, "spec.replicas")) == (ABSENT, 3)
        assert at(shown, f"{OWN_FIRST}.resources") == {"limits": {"nvidia.com/gpu": 8}}

    def test_a_total_of_gpus_survives_another_image(self):
        shown = convert(edited(self.hub, {f"{FIRST}.image": "example.com/pi:2"}), "v1alpha1")
        assert (at(shown, "spec.gpus"), at(shown, "spec.replicas")) == (16, ABSENT)


def test_an_edit_in_an_old_version_wins_over_what_was_kept_for_the_hub():
    hub = edited(with_roles("v2beta1"), {f"{LAUNCHER}.template.spec.containers.0.image": "a:1"})
    shown = edited(convert(hub, "v1alpha1"), {f"{OWN_FIRST}.image": "b:2"})
    again = convert(shown, "v2beta1")
    assert at(again, f"{LAUNCHER}.template.spec.containers.0.image") == "b:2"
    assert at(again, f"{FIRST}.image") == "b:2"


def test_a_field_that_is_removed_in_an_old_version_is_removed_in_the_hub():
    hub = convert(edited(with_roles("v1"), {"spec.mainContainer": "mpi"}), "v2beta1")
    shown = convert(hub, "v1")
    del shown["spec"]["mainContainer"]
    assert names.MAIN_CONTAINER not in convert(shown, "v2beta1")["metadata"]["annotations"]


@pytest.mark.parametrize(
    ("place", "annotation", "policies"),
    [
        pytest.param(
            f"{LAUNCHER}.restartPolicy",
            names.LAUNCHER_RESTART_POLICY,
            ("ExitCode", "OnFailure", "Never"),
            id="of a launcher that was retried by exit code",
        ),
        pytest.param(
            f"{WORKER}.restartPolicy",
            names.WORKER_RESTART_POLICY,
            ("Always", "Never", "OnFailure"),
            id="of workers that were always restarted",
        ),
    ],
)
def test_a_restart_policy_does_not_come_back(place, annotation, policies):
    """It was written in v1, changed in v2beta1, and then set to what the hub had for the first."""
    first, in_hub, last = policies
    hub = convert(edited(with_roles("v1"), {place: first}), "v2beta1")
    read = convert(edited(hub, {place: in_hub}), "v1")
    hub = convert(edited(read, {place: last}), "v2beta1")
    assert at(hub, place) == last
    assert annotation not in hub["metadata"].get("annotations", {})
