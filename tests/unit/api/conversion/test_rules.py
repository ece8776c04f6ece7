"""What goes where: one row for each rule of docs/decisions/0006-api-versions.md."""

import pytest

from mpi_operator.api import annotations as names
from mpi_operator.api.conversion import UnitSettings, convert, own_path
from mpi_operator.api.conversion.places import ABSENT
from tests.unit.api.conversion.jobs import (
    LAUNCHER,
    WORKER,
    annotation,
    at,
    edited,
    job,
    template,
    with_roles,
)

ARGS = f"{WORKER}.template.spec.containers.0.args"
COMMAND = f"{WORKER}.template.spec.containers.0.command"
CONTAINERS = f"{WORKER}.template.spec.containers"
TWO = [{"name": "proxy", "args": ["serve"]}, {"name": "mpi", "args": ["mpirun"]}]
GPU = f"{LAUNCHER}.template.spec.containers.0.resources.limits"
RULES = [
    ("v1", {}, {f"{LAUNCHER}.restartPolicy": "Never", f"{WORKER}.restartPolicy": "Never"},
     "v1 never restarts by default"),
    ("v1", {}, {"spec.runPolicy.backoffLimit": 0}, "v1 does not retry by default"),
    ("v1", {f"{LAUNCHER}.restartPolicy": "Never", "spec.runPolicy.backoffLimit": 4},
     {"spec.runPolicy.backoffLimit": 0}, "a backoff limit does not retry a v1 launcher with Never"),
    ("v1", {f"{LAUNCHER}.restartPolicy": "OnFailure"},
     {f"{LAUNCHER}.restartPolicy": "OnFailure", "spec.runPolicy": ABSENT},
     "a v1 launcher with OnFailure is retried"),
    ("v1", {f"{LAUNCHER}.restartPolicy": "Always"}, {f"{LAUNCHER}.restartPolicy": "OnFailure"},
     "a Job cannot be Always"),
    ("v1", {f"{LAUNCHER}.restartPolicy": "ExitCode", "spec.runPolicy.backoffLimit": 4},
     {f"{LAUNCHER}.restartPolicy": "Never", "spec.runPolicy.backoffLimit": 4},
     "a v1 launcher with ExitCode keeps its backoff limit"),
    ("v1", {f"{WORKER}.restartPolicy": "Always"}, {f"{WORKER}.restartPolicy": "OnFailure"},
     "a v1 worker with Always is restarted at least after failures"),
    ("v1", {ARGS: ["mpirun"]}, {ARGS: ABSENT}, "arguments of a v1 worker without a command go"),
    ("v1", {ARGS: ["mpirun"], COMMAND: []}, {ARGS: ABSENT}, "an empty command is none"),
    ("v1", {ARGS: ["-D"], COMMAND: ["sshd"]}, {ARGS: ["-D"], COMMAND: ["sshd"]},
     "arguments of a v1 worker with a command stay"),
    ("v1alpha2", {ARGS: ["mpirun"]}, {ARGS: ABSENT},
     "arguments of a v1alpha2 worker without a command go"),
    *((version, {CONTAINERS: TWO, "spec.mainContainer": "mpi"},
       {f"{CONTAINERS}.0.args": ["serve"], f"{CONTAINERS}.1.args": ABSENT},
       f"only the main container of a {version} worker loses its arguments")
      for version in ("v1", "v1alpha2")),
    ("v1", {CONTAINERS: TWO, "spec.mainContainer": "gone"},
     {f"{CONTAINERS}.0.args": ABSENT, f"{CONTAINERS}.1.args": ["mpirun"]},
     "a main container that workers do not have is their first one"),
    ("v1", {CONTAINERS: TWO, "metadata.annotations": {names.MAIN_CONTAINER: "mpi"}},
     {f"{CONTAINERS}.0.args": ["serve"], f"{CONTAINERS}.1.args": ABSENT},
     "the annotation names the main container as well"),
    ("v1", {GPU: {"nvidia.com/gpu": 1}}, {"spec.runLauncherAsWorker": True},
     "a v1 launcher with a GPU is a worker as well"),
    ("v1", {GPU: {"nvidia.com/gpu": 1}, "spec.runLauncherAsWorker": False},
     {"spec.runLauncherAsWorker": False}, "unless the job says otherwise"),
    ("v1", {GPU: {"cpu": 1}}, {"spec.runLauncherAsWorker": False},
     "a v1 launcher without a GPU is none"),
    ("v1", {"spec.cleanPodPolicy": "All"}, {"spec.runPolicy.cleanPodPolicy": "All"},
     "v1's clean pod policy is part of the run policy"),
    ("v1", {"spec.cleanPodPolicy": "All", "spec.runPolicy.cleanPodPolicy": "Running"},
     {"spec.runPolicy.cleanPodPolicy": "Running"}, "v1's run policy wins"),
    ("v1", {"spec.runPolicy.ttlSecondsAfterFinished": 9},
     {"spec.runPolicy.ttlSecondsAfterFinished": 9}, "a TTL stays where it is"),
    ("v1", {"spec.runPolicy.managedBy": "kubeflow.org/training-operator"},
     {"spec.runPolicy.managedBy": "kubeflow.org/mpi-operator"}, "we are v1's training-operator"),
    ("v1", {"spec.runPolicy.managedBy": "kueue.x-k8s.io/multikueue"},
     {"spec.runPolicy.managedBy": "kueue.x-k8s.io/multikueue"}, "MultiKueue stays the manager"),
    ("v1alpha2", {"spec.backoffLimit": 3, "spec.activeDeadlineSeconds": 60},
     {"spec.runPolicy.backoffLimit": 3, "spec.runPolicy.activeDeadlineSeconds": 60},
     "v1alpha2's limits are part of the run policy"),
    ("v1alpha2", {"spec.backoffLimit": 3, "spec.runPolicy.backoffLimit": 1},
     {"spec.runPolicy.backoffLimit": 1}, "v1alpha2's run policy wins about limits"),
    ("v1alpha2", {"spec.cleanPodPolicy": "All", "spec.runPolicy.cleanPodPolicy": "Running"},
     {"spec.runPolicy.cleanPodPolicy": "All"},
     "v1alpha2 ignores the clean pod policy of the run policy"),
    ("v1alpha2", {"spec.mpiDistribution": "IntelMPI"}, {"spec.mpiImplementation": "Intel"},
     "IntelMPI is Intel"),
    ("v1alpha2", {"spec.mpiDistribution": "MPICH"}, {"spec.mpiImplementation": "MPICH"},
     "MPICH is MPICH"),
    ("v1alpha2", {}, {f"{LAUNCHER}.restartPolicy": "OnFailure",
                      f"{WORKER}.restartPolicy": "OnFailure"},
     "v1alpha2 restarts after failures by default"),
    ("v1alpha2", {f"{LAUNCHER}.restartPolicy": "Never", f"{WORKER}.restartPolicy": "Never"},
     {f"{LAUNCHER}.restartPolicy": "Never", f"{WORKER}.restartPolicy": "OnFailure"},
     "only a launcher of v1alpha2 can be Never"),
    ("v1alpha2", {f"{LAUNCHER}.restartPolicy": "ExitCode"},
     {f"{LAUNCHER}.restartPolicy": "OnFailure"}, "v1alpha2 has no ExitCode logic"),
    ("v1", {f"{LAUNCHER}.restartPolicy": "", f"{WORKER}.restartPolicy": ""},
     {f"{LAUNCHER}.restartPolicy": "Never", f"{WORKER}.restartPolicy": "Never"},
     "an empty restart policy of v1 is its default"),
    ("v1alpha2", {f"{LAUNCHER}.restartPolicy": "", f"{WORKER}.restartPolicy": ""},
     {f"{LAUNCHER}.restartPolicy": "OnFailure", f"{WORKER}.restartPolicy": "OnFailure"},
     "an empty restart policy of v1alpha2 is its default"),
    ("v1", {"spec.cleanPodPolicy": "All", "spec.runPolicy.cleanPodPolicy": ""},
     {"spec.runPolicy.cleanPodPolicy": "All"}, "an empty clean pod policy does not win"),
    ("v1alpha2", {"spec.cleanPodPolicy": "", "spec.runPolicy.cleanPodPolicy": "Running"},
     {"spec.runPolicy.cleanPodPolicy": "Running"}, "nor does one of v1alpha2"),
    ("v1", {"spec.runPolicy.managedBy": ""}, {"spec.runPolicy.managedBy": ABSENT},
     "an empty manager is none"),
    ("v1alpha2", {"spec.mpiDistribution": ""}, {"spec.mpiImplementation": "OpenMPI"},
     "an empty distribution is the default one"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("version", "given", "expected"), [pytest.param(*row[:3], id=row[3]) for row in RULES]
)
def test_rule(version, given, expected):
    hub = convert(edited(with_roles(version), given), "v2beta1")
    assert {place: at(hub, place) for place in expected} == expected


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        pytest.param({"spec.mainContainer": "mpi"}, names.MAIN_CONTAINER, "mpi", id="a container"),
        pytest.param(
            {f"{LAUNCHER}.restartPolicy": "ExitCode"},
            names.LAUNCHER_RESTART_POLICY,
            "ExitCode",
            id="a launcher that is retried by its exit code",
        ),
        pytest.param(
            {f"{WORKER}.restartPolicy": "ExitCode"},
            names.WORKER_RESTART_POLICY,
            "ExitCode",
            id="a worker that is retried by its exit code",
        ),
        pytest.param(
            {f"{WORKER}.restartPolicy": "Always"},
            names.WORKER_RESTART_POLICY,
            "Always",
            id="a worker that is always restarted",
        ),
    ],
)
def test_what_the_spec_of_the_hub_cannot_say_is_an_annotation(given, name, value):
    written = edited(with_roles("v1"), given)
    hub = convert(written, "v2beta1")
    assert annotation(hub, name) == value
    shown = convert(hub, "v1")
    assert shown == written
    (place,) = given
    assert annotation(convert(edited(shown, {place: "Never"}), "v2beta1"), name) != value


def test_a_setting_of_a_v2beta1_job_is_a_field_in_v1():
    hub = edited(with_roles("v2beta1"), {"metadata.annotations": {names.MAIN_CONTAINER: "mpi"}})
    shown = convert(hub, "v1")
    assert (at(shown, "spec.mainContainer"), annotation(shown, names.MAIN_CONTAINER)) == (
        "mpi",
        None,
    )
    assert annotation(convert(shown, "v2beta1"), names.MAIN_CONTAINER) == "mpi"


def test_a_job_of_another_version_keeps_its_own_defaults():
    hub = edited(with_roles("v2beta1"), {ARGS: ["-np", "2"]})
    for version in ("v1", "v1alpha2"):
        again = convert(convert(hub, version), "v2beta1")
        assert at(again, f"{LAUNCHER}.restartPolicy") is ABSENT
        assert at(again, ARGS) == ["-np", "2"]


def test_a_plain_field_of_the_hub_can_be_set_in_each_old_version():
    for version in ("v1", "v1alpha2", "v1alpha1"):
        shown = edited(convert(with_roles("v2beta1"), version), {"spec.runPolicy.suspend": True})
        assert at(convert(shown, "v2beta1"), "spec.runPolicy.suspend") is True


class TestWrittenIn:
    def test_is_stamped_on_the_way_to_the_hub_and_hidden_on_the_way_back(self):
        hub = convert(with_roles("v1"), "v2beta1")
        assert annotation(hub, names.WRITTEN_IN) == "v1"
        assert annotation(convert(hub, "v1"), names.WRITTEN_IN) is None

    def test_is_shown_to_other_versions(self):
        other = convert(with_roles("v1"), "v1alpha2")
        assert annotation(other, names.WRITTEN_IN) == "v1"
        assert annotation(convert(other, "v2beta1"), names.WRITTEN_IN) == "v1"

    def test_is_shown_for_a_job_of_the_hub_and_removed_again(self):
        other = convert(with_roles("v2beta1"), "v1")
        assert annotation(other, names.WRITTEN_IN) == "v2beta1"
        assert annotation(convert(other, "v2beta1"), names.WRITTEN_IN) is None

    def test_wins_if_it_is_given(self):
        given = edited(with_roles("v1"), {"metadata.annotations": {names.WRITTEN_IN: "v1alpha2"}})
        assert annotation(convert(given, "v2beta1"), names.WRITTEN_IN) == "v1alpha2"


FIRST = "template.spec.containers.0"
EIGHT = UnitSettings(gpus_per_node=8, processing_units_per_node=4)
# Workers, the limit of each, and slots.
UNITS = [
    ({"gpus": 16}, 2, 8, 8, "sixteen GPUs are two workers with eight each"),
    ({"gpus": 4}, 1, 4, 4, "fewer GPUs than a node has are one worker"),
    ({"gpus": 8}, 1, 8, 8, "as many GPUs as a node has are one worker"),
    ({"gpus": 12, "gpusPerNode": 4}, 3, 4, 4, "the job's own GPUs per node win"),
    ({"gpus": 16, "slotsPerWorker": 2}, 2, 8, 2, "slots may differ from GPUs"),
    ({"processingUnits": 8}, 2, 4, 4, "processing units have their own setting"),
    ({"processingUnits": 8, "processingUnitsPerNode": 8}, 1, 8, 8, "and their own field"),
    ({"processingUnits": 8, "processingResourceType": "tpu"}, 2, 4, 4, "what is unknown is a GPU"),
    ({"replicas": 3}, 3, ABSENT, 1, "replicas without a limit have one slot"),
]  # fmt: skip


class TestV1alpha1:
    def job(self, **spec):
        return job("v1alpha1", template=template(command=["mpirun"], args=["-np"]), **spec)

    @pytest.mark.parametrize(
        ("spec", "workers", "limit", "slots"), [pytest.param(*r[:4], id=r[4]) for r in UNITS]
    )
    def test_units(self, spec, workers, limit, slots):
        hub = convert(self.job(**spec), "v2beta1", EIGHT)
        assert at(hub, f"{WORKER}.replicas") == workers
        gpu = ("resources", "limits", "nvidia.com/gpu")
        first = at(hub, f"{WORKER}.{FIRST}")
        assert first.get("resources", {}).get("limits", {}).get(gpu[-1], ABSENT) == limit
        assert at(hub, "spec.slotsPerWorker") == slots

    def test_processors_are_units_as_well(self):
        given = self.job(processingUnits=8, processingResourceType="cpu")
        hub = convert(given, "v2beta1", EIGHT)
        assert at(hub, f"{WORKER}.{FIRST}.resources") == {"limits": {"cpu": 4}}

    def test_with_replicas_the_limit_in_the_template_gives_the_slots(self):
        limits = {"limits": {"nvidia.com/gpu": "4"}}
        given = job("v1alpha1", replicas=2, template=template(resources=limits))
        hub = convert(given, "v2beta1")
        assert at(hub, "spec.slotsPerWorker") == 4
        assert at(hub, f"{LAUNCHER}.{FIRST}.resources") is ABSENT
        assert at(hub, f"{WORKER}.{FIRST}.resources") == limits

    def test_its_template_is_split(self):
        hub = convert(self.job(replicas=1), "v2beta1")
        assert at(hub, f"{LAUNCHER}.{FIRST}") == {
            "name": "mpi",
            "image": "example.com/pi:1",
            "command": ["mpirun"],
            "args": ["-np"],
        }
        assert at(hub, f"{WORKER}.{FIRST}") == {"name": "mpi", "image": "example.com/pi:1"}

    def test_what_it_implied_is_said(self):
        hub = convert(self.job(replicas=1), "v2beta1")
        assert at(hub, "spec.runPolicy") == {
            "cleanPodPolicy": "All",
            "backoffLimit": 6,
            "suspend": False,
        }
        assert at(hub, "spec.launcherCreationPolicy") == "WaitForWorkersReady"

    @pytest.mark.parametrize(
        ("policy", "launcher"),
        [
            pytest.param("Never", "Never", id="Never is for the launcher"),
            pytest.param("Always", "OnFailure", id="a Job cannot be Always"),
        ],
    )
    def test_the_policy_of_the_template(self, policy, launcher):
        given = edited(self.job(replicas=1), {"spec.template.spec.restartPolicy": policy})
        hub = convert(given, "v2beta1")
        assert at(hub, f"{LAUNCHER}.restartPolicy") == launcher
        assert at(hub, f"{WORKER}.restartPolicy") == "OnFailure"
        assert at(hub, f"{LAUNCHER}.template.spec.restartPolicy") is ABSENT

    def test_a_launcher_on_a_master(self):
        given = self.job(replicas=1, launcherOnMaster=True)
        hub = convert(given, "v2beta1")
        tolerated = at(hub, f"{LAUNCHER}.template.spec.tolerations")
        assert [each["key"].split("/")[1] for each in tolerated] == ["master", "control-plane"]
        assert at(hub, f"{WORKER}.template.spec.tolerations") is ABSENT
        assert at(convert(hub, "v1alpha1"), "spec") == given["spec"]

    def test_units_per_node_are_settled_once(self):
        hub = convert(self.job(gpus=16), "v2beta1", EIGHT)
        assert annotation(hub, names.UNITS_PER_NODE) == "8"
        later = UnitSettings(gpus_per_node=2)
        shown = convert(hub, "v1alpha1", later)
        assert at(convert(shown, "v2beta1", later), f"{WORKER}.replicas") == 2
        more = edited(shown, {"spec.gpus": 32})
        assert at(convert(more, "v2beta1", later), f"{WORKER}.replicas") == 4

    @pytest.mark.parametrize(
        ("spec", "sentence"),
        [
            pytest.param(
                {"gpus": 12},
                "spec.gpus: Invalid value: 12: must be less than 8 or a multiple of it"
                " (GPUs per node)",
                id="not a multiple",
            ),
            pytest.param(
                {"processingUnits": 5},
                "spec.processingUnits: Invalid value: 5: must be less than 4 or a multiple of it"
                " (processing units per node)",
                id="not a multiple, in units",
            ),
            pytest.param(
                {"gpus": 8, "processingUnits": 8},
                "spec.gpus: may not be given together with spec.processingUnits",
                id="two totals",
            ),
            pytest.param(
                {"gpus": 0},
                "spec.gpus: Invalid value: 0: must be an integer of at least 1",
                id="no GPUs at all",
            ),
            pytest.param(
                {"gpus": "8"},
                'spec.gpus: Invalid value: "8": must be an integer of at least 1',
                id="text",
            ),
        ],
    )
    def test_what_cannot_run_says_why_and_keeps_its_data(self, spec, sentence):
        given = self.job(**spec)
        hub = convert(given, "v2beta1", EIGHT)
        assert at(hub, f"{WORKER}.replicas") == 0
        assert annotation(hub, names.CONVERSION_ERROR) == sentence
        shown = convert(hub, "v1alpha1", EIGHT)
        assert shown["spec"] == given["spec"]
        corrected = edited(self.job(gpus=16), {"metadata": shown["metadata"]})
        assert annotation(convert(corrected, "v2beta1", EIGHT), names.CONVERSION_ERROR) is None

    @pytest.mark.parametrize("version", ["v1", "v1alpha2"])
    def test_a_correction_in_another_version_removes_the_error(self, version):
        hub = convert(self.job(gpus=12), "v2beta1", EIGHT)
        shown = edited(convert(hub, version, EIGHT), {f"{WORKER}.replicas": 3})
        again = convert(shown, "v2beta1", EIGHT)
        assert annotation(again, names.CONVERSION_ERROR) is None
        assert (at(again, f"{WORKER}.replicas"), at(again, "spec.slotsPerWorker")) == (3, 1)

    def test_a_correction_in_the_hub_is_seen_everywhere(self):
        hub = edited(convert(self.job(gpus=12), "v2beta1", EIGHT), {f"{WORKER}.replicas": 3})
        shown = convert(hub, "v1alpha1", EIGHT)
        assert (at(shown, "spec.replicas"), at(shown, "spec.gpus")) == (3, ABSENT)
        assert annotation(shown, names.CONVERSION_ERROR) is None

    def test_a_job_of_another_version_has_replicas_to_scale_and_one_template(self):
        shown = convert(with_roles("v2beta1"), "v1alpha1")
        assert at(shown, "spec.replicas") == 2
        assert at(shown, "spec.template.spec.containers.0.command") == ["mpirun"]
        assert at(shown, "spec.mpiReplicaSpecs") is ABSENT
        scaled = convert(edited(shown, {"spec.replicas": 5}), "v2beta1")
        assert at(scaled, f"{WORKER}.replicas") == 5


STATUS = {
    "conditions": [{"type": "Succeeded", "status": "True"}],
    "replicaStatuses": {
        "Launcher": {"active": 0, "succeeded": 1, "failed": 0},
        "Worker": {"active": 0, "succeeded": 0, "failed": 0},
    },
}


class TestStatus:
    @pytest.mark.parametrize("version", ["v1", "v1alpha2", "v1alpha1"])
    def test_zeros_are_omitted_as_go_does(self, version):
        shown = convert({**with_roles("v2beta1"), "status": STATUS}, version)
        assert at(shown, "status.replicaStatuses") == {"Launcher": {"succeeded": 1}, "Worker": {}}

    @pytest.mark.parametrize(
        ("condition", "state"),
        [
            pytest.param(("Created", "True"), ABSENT, id="nothing runs yet"),
            pytest.param(("Running", "True"), "Active", id="it runs"),
            pytest.param(("Succeeded", "True"), "Succeeded", id="it has succeeded"),
            pytest.param(("Failed", "True"), "Failed", id="it has failed"),
            pytest.param(("Failed", "False"), ABSENT, id="it has not failed"),
        ],
    )
    def test_v1alpha1_has_a_launcher_status(self, condition, state):
        conditions = [dict(zip(("type", "status"), condition, strict=True))]
        hub = {**with_roles("v2beta1"), "status": {"conditions": conditions}}
        assert at(convert(hub, "v1alpha1"), "status.launcherStatus") == state

    def test_v1alpha1_counts_workers(self):
        counts = {"Worker": {"active": 2}}
        hub = {**with_roles("v2beta1"), "status": {"replicaStatuses": counts}}
        assert at(convert(hub, "v1alpha1"), "status.workerReplicas") == 2

    def test_an_old_status_of_v1alpha1_gets_conditions_and_counts(self):
        status = {
            "launcherStatus": "Succeeded",
            "workerReplicas": 2,
            "startTime": "2019-07-09T22:15:51Z",
            "completionTime": "2019-07-09T22:17:06Z",
        }
        hub = convert({**job("v1alpha1", replicas=2), "status": status}, "v2beta1")
        assert at(hub, "status.conditions") == [
            {
                "type": "Succeeded",
                "status": "True",
                "reason": "MPIJobSucceeded",
                "message": "MPIJob default/pi successfully completed.",
                "lastUpdateTime": "2019-07-09T22:17:06Z",
                "lastTransitionTime": "2019-07-09T22:17:06Z",
            }
        ]
        assert at(hub, "status.replicaStatuses") == {
            "Launcher": {"active": 0, "succeeded": 1, "failed": 0},
            "Worker": {"active": 2, "succeeded": 0, "failed": 0},
        }


SPEC, RUN, ROLES = ("spec",), ("spec", "runPolicy"), ("spec", "mpiReplicaSpecs")


@pytest.mark.parametrize(
    ("version", "hub", "own"),
    [
        pytest.param("v1alpha2", (*RUN, "backoffLimit"), (*SPEC, "backoffLimit"), id="retries"),
        pytest.param("v1", (*RUN, "backoffLimit"), (*RUN, "backoffLimit"), id="v1 differs"),
        pytest.param(
            "v1alpha2", (*SPEC, "mpiImplementation"), (*SPEC, "mpiDistribution"), id="another name"
        ),
        pytest.param(
            "v1alpha1",
            (*ROLES, "Launcher", "template", "spec", "containers", 0, "image"),
            (*SPEC, "template", "spec", "containers", 0, "image"),
            id="one template",
        ),
        pytest.param(
            "v1alpha1", (*ROLES, "Worker", "replicas"), (*SPEC, "replicas"), id="the workers"
        ),
        pytest.param("v1alpha1", ROLES, (*SPEC, "template"), id="both roles"),
        pytest.param("v2beta1", (*RUN, "suspend"), (*RUN, "suspend"), id="the hub itself"),
    ],
)
def test_errors_name_the_fields_of_the_version(version, hub, own):
    assert own_path(version, hub) == own
