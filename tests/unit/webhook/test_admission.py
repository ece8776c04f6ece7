"""What admission refuses and warns about, in the terms of each version."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_operator.api.annotations import CONVERTED_FIELDS
from mpi_operator.api.conversion import VERSIONS, UnitSettings, convert
from mpi_operator.api.conversion.lossless import difference
from mpi_operator.api.conversion.old_version import View
from mpi_operator.api.conversion.v1 import V1
from mpi_operator.webhook.admission import mutate, validate
from mpi_operator.webhook.admission_response import Admission
from tests.support.mpijobs import changed, mpijob, template, without
from tests.support.versions import WRITTEN_IN, v1alpha1

EIGHT = UnitSettings(gpus_per_node=8, processing_units_per_node=8)
SPECS = "spec.mpiReplicaSpecs"


def old(version: str, **spec: Any) -> dict[str, Any]:
    """A job with a launcher and two workers in v1 or v1alpha2."""
    return mpijob(**spec) | {"apiVersion": f"kubeflow.org/{version}"}


def annotated(job: dict[str, Any], value: str) -> dict[str, Any]:
    return changed(job, "metadata.annotations", {WRITTEN_IN: value})


def created(job: dict[str, Any]) -> Admission:
    return validate({"operation": "CREATE", "object": job, "oldObject": None}, EIGHT)


def updated(before: dict[str, Any], after: dict[str, Any]) -> Admission:
    return validate({"operation": "UPDATE", "object": after, "oldObject": before}, EIGHT)


# --- errors


def test_an_annotation_cannot_change_what_is_stored_past_the_checks():
    """The spec of v1 stays the same, that of the stored version does not."""
    before = old("v1", slotsPerWorker=2)
    mapped = V1.up(before, View(is_own=True))
    entries = difference(mapped, changed(mapped, "spec.slotsPerWorker", -5), V1.hub_groups)
    books = {CONVERTED_FIELDS: json.dumps({"v2beta1": entries})}
    after = changed(before, "metadata.annotations", books)
    assert convert(after, "v2beta1")["spec"]["slotsPerWorker"] == -5
    assert "spec.slotsPerWorker: Invalid value: -5" in updated(before, after).message


@pytest.mark.parametrize(
    ("job", "message"),
    [
        pytest.param(
            v1alpha1(gpus=12),
            "spec.gpus: Invalid value: 12: must be less than 8 or a multiple of it (GPUs per node)",
            id="GPUs that do not divide",
        ),
        pytest.param(
            v1alpha1(processingUnits=12),
            "spec.processingUnits: Invalid value: 12: must be less than 8 or a multiple of it "
            "(processing units per node)",
            id="units that do not divide",
        ),
        pytest.param(
            v1alpha1(gpus=8, processingUnits=8),
            "spec.gpus: may not be given together with spec.processingUnits",
            id="two totals",
        ),
        pytest.param(
            v1alpha1(),
            "spec.replicas: Required value: one of gpus, processingUnits and replicas",
            id="no total",
        ),
        pytest.param(
            v1alpha1(replicas=0),
            "spec.replicas: Invalid value: 0: must be at least 1 unless runLauncherAsWorker is "
            "true",
            id="zero replicas",
        ),
        pytest.param(
            v1alpha1(replicas=1, template=template(containers=[{"name": "a", "command": "sh"}])),
            'spec.template.spec.containers[0].command: Invalid value: "sh": must be an array',
            id="an error in the template that both roles share",
        ),
        pytest.param(
            v1alpha1(replicas=1, template={"spec": {}}),
            "spec.template.spec.containers: Required value",
            id="a template without containers",
        ),
        pytest.param(
            old("v1", worker={"replicas": 0}),
            "spec.mpiReplicaSpecs[Worker].replicas: Invalid value: 0: must be at least 1 unless "
            "runLauncherAsWorker is true",
            id="v1 without workers",
        ),
        pytest.param(
            old("v1", cleanPodPolicy="Sometimes"),
            'spec.runPolicy.cleanPodPolicy: Unsupported value: "Sometimes": supported values: '
            '"All", "None", "Running"',
            id="v1 with an unknown policy",
        ),
        pytest.param(
            old("v1alpha2", cleanPodPolicy="Sometimes"),
            'spec.cleanPodPolicy: Unsupported value: "Sometimes": supported values: "All", '
            '"None", "Running"',
            id="v1alpha2 with an unknown policy",
        ),
        pytest.param(
            old("v1alpha2", backoffLimit=-1),
            "spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0",
            id="v1alpha2 with a negative limit",
        ),
        pytest.param(
            mpijob(worker={"template": template(volumes={})}),
            "spec.mpiReplicaSpecs[Worker].template.spec.volumes: Invalid value: object: must be "
            "an array",
            id="v2beta1",
        ),
    ],
)
def test_an_invalid_job_is_refused_in_its_own_terms(job, message):
    admission = created(job)
    assert not admission.allowed
    assert admission.message == message


def test_every_error_is_reported():
    job = changed(old("v1", slotsPerWorker=-1), "metadata.name", "1pi")
    message = created(job).message
    assert "metadata.name: Invalid value" in message
    assert "; " in message
    assert "spec.slotsPerWorker: Invalid value: -1" in message


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(mpijob(), id="v2beta1"),
        pytest.param(old("v1"), id="v1"),
        pytest.param(old("v1alpha2"), id="v1alpha2"),
        pytest.param(v1alpha1(gpus=16), id="v1alpha1 with GPUs"),
        pytest.param(v1alpha1(replicas=3), id="v1alpha1 with replicas"),
        pytest.param(
            old(
                "v1",
                worker={"replicas": 0},
                launcher={
                    "template": template(
                        containers=[{"name": "a", "resources": {"limits": {"nvidia.com/gpu": 1}}}]
                    )
                },
            ),
            id="v1 with a GPU launcher only",
        ),
        pytest.param(
            convert(without(mpijob(), f"{SPECS}.Worker"), "v1alpha1"),
            id="a launcher of v2beta1 alone, written back in v1alpha1",
        ),
        pytest.param(
            convert(mpijob(runLauncherAsWorker=True, worker={"replicas": 0}), "v1alpha1"),
            id="no workers of v2beta1, written back in v1alpha1",
        ),
        pytest.param(
            changed(without(mpijob(), "metadata.name"), "metadata.generateName", "pi-"),
            id="a name that is not generated yet",
        ),
        pytest.param(
            mpijob() | {"status": {"conditions": "none"}}, id="a status, which is not stored"
        ),
        pytest.param({"apiVersion": "kubeflow.org/v3"}, id="a version that is not ours"),
        pytest.param({}, id="no object at all"),
    ],
)
def test_a_valid_job_is_accepted_without_warnings(job):
    assert created(job) == Admission(allowed=True)


# --- updates of stored jobs

INVALID = v1alpha1(gpus=12)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(INVALID, changed(INVALID, "metadata.labels", {"a": "b"}), id="a label"),
        pytest.param(INVALID, changed(INVALID, "metadata.finalizers", []), id="finalizers"),
        pytest.param(INVALID, changed(INVALID, "status", {"selector": "a"}), id="a status"),
        pytest.param(
            INVALID, changed(INVALID, "spec.runPolicy", {"suspend": True}), id="a suspension"
        ),
        pytest.param(INVALID, changed(INVALID, "spec.gpus", 16), id="a correction"),
        pytest.param(
            mpijob(slotsPerWorker=-1),
            mpijob(slotsPerWorker=-1, runPolicy={"suspend": True}),
            id="a suspension by Kueue",
        ),
        pytest.param(
            mpijob("a" * 60),
            mpijob("a" * 60, worker={"replicas": 1}),
            id="fewer workers of a job whose name is too long",
        ),
        pytest.param(
            changed(mpijob(), "metadata.deletionTimestamp", "2026-01-01T00:00:00Z"),
            changed(
                mpijob(slotsPerWorker=-1), "metadata.deletionTimestamp", "2026-01-01T00:00:00Z"
            ),
            id="whatever is being deleted",
        ),
    ],
)
def test_an_update_that_makes_nothing_worse_is_accepted(before, after):
    assert updated(before, after).allowed


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        pytest.param(v1alpha1(gpus=16), INVALID, "spec.gpus", id="a valid job"),
        pytest.param(INVALID, v1alpha1(gpus=20), "spec.gpus", id="an error for another"),
        pytest.param(
            INVALID, changed(INVALID, "spec.slotsPerWorker", -1), "spec.slotsPerWorker", id="two"
        ),
    ],
)
def test_an_update_that_adds_an_error_is_refused_for_that(before, after, message):
    admission = updated(before, after)
    assert not admission.allowed
    assert admission.message.startswith(message)
    assert ";" not in admission.message


# --- warnings


@pytest.mark.parametrize(
    ("job", "warning"),
    [
        pytest.param(
            old("v1", cleanPodPolicy="All"),
            "spec.cleanPodPolicy: deprecated; use spec.runPolicy.cleanPodPolicy",
            id="v1: the old place of cleanPodPolicy",
        ),
        pytest.param(
            old("v1", cleanPodPolicy="All", runPolicy={"cleanPodPolicy": "None"}),
            "spec.cleanPodPolicy: ignored, because spec.runPolicy.cleanPodPolicy is given",
            id="v1: both places",
        ),
        pytest.param(
            old("v1", launcher={"restartPolicy": "Always"}),
            "spec.mpiReplicaSpecs[Launcher].restartPolicy: Always means OnFailure for a launcher",
            id="v1: a launcher that is always restarted",
        ),
        pytest.param(
            old("v1", runPolicy={"backoffLimit": 3}),
            "spec.runPolicy.backoffLimit: ignored, because the launcher's restartPolicy is Never",
            id="v1: retries of a launcher that is never restarted",
        ),
        pytest.param(
            old(
                "v1", worker={"template": template(containers=[{"name": "a", "args": ["mpirun"]}])}
            ),
            "spec.mpiReplicaSpecs[Worker].template.spec.containers[0].args: ignored, because the "
            "worker has no command",
            id="v1: arguments without a command",
        ),
        pytest.param(
            old(
                "v1",
                mainContainer="mpi",
                worker={
                    "template": template(
                        containers=[{"name": "proxy"}, {"name": "mpi", "args": ["c"]}]
                    )
                },
            ),
            "spec.mpiReplicaSpecs[Worker].template.spec.containers[1].args: ignored, because the "
            "worker has no command",
            id="v1: arguments of a main container that is not the first",
        ),
        pytest.param(
            old("v1", slotsPerWorkr=2),
            "spec.slotsPerWorkr: unknown field, ignored; did you mean slotsPerWorker?",
            id="v1: a typo",
        ),
        pytest.param(
            old("v1", worker={"template": template(nodeSelecter={})}),
            "spec.mpiReplicaSpecs[Worker].template.spec.nodeSelecter: unknown field, ignored; did "
            "you mean nodeSelector?",
            id="v1: a typo in a template",
        ),
        pytest.param(
            old("v1", mainContainer="x", worker={"template": template(containers=[{"name": "x"}])}),
            'spec.mainContainer: Launcher has no container "x", so its first one is used',
            id="v1: an unknown container",
        ),
        pytest.param(
            changed(old("v1"), f"{SPECS}.Boss", {}),
            "spec.mpiReplicaSpecs[Boss]: ignored; the roles are Launcher and Worker",
            id="v1: an unknown role",
        ),
        pytest.param(
            old("v1alpha2", worker={"restartPolicy": "Never"}),
            "spec.mpiReplicaSpecs[Worker].restartPolicy: ignored; workers are restarted after a "
            "failure",
            id="v1alpha2: a policy of workers",
        ),
        pytest.param(
            old("v1alpha2", launcher={"restartPolicy": "ExitCode"}),
            "spec.mpiReplicaSpecs[Launcher].restartPolicy: ExitCode means OnFailure",
            id="v1alpha2: a policy of the launcher",
        ),
        pytest.param(
            old("v1alpha2", backoffLimit=1, runPolicy={"backoffLimit": 2}),
            "spec.backoffLimit: ignored, because spec.runPolicy.backoffLimit is given",
            id="v1alpha2: both limits",
        ),
        pytest.param(
            old("v1alpha2", cleanPodPolicy="All", runPolicy={"cleanPodPolicy": "None"}),
            "spec.runPolicy.cleanPodPolicy: ignored, because spec.cleanPodPolicy is given",
            id="v1alpha2: both policies",
        ),
        pytest.param(
            v1alpha1(replicas=2, gpusPerNode=4),
            "spec.gpusPerNode: ignored, because spec.replicas is given",
            id="v1alpha1: GPUs per node without a total",
        ),
        pytest.param(
            v1alpha1(replicas=2, slotsPerWorker=0),
            "spec.slotsPerWorker: with 0 slots no rank can run",
            id="v1alpha1: no slots",
        ),
        pytest.param(
            mpijob(worker={"template": template(restartPolicy="Always")}),
            "spec.mpiReplicaSpecs[Worker].template.spec.restartPolicy: overridden by the "
            "restartPolicy next to the template",
            id="v2beta1",
        ),
        pytest.param(
            annotated(mpijob(), "v7"),
            f"metadata.annotations[{WRITTEN_IN}]: ignored: Unsupported value: "
            '"v7": supported values: "v2beta1", "v1", "v1alpha2", "v1alpha1"',
            id="a version that does not exist",
        ),
    ],
)
def test_authors_are_warned(job, warning):
    assert created(job) == Admission(allowed=True, warnings=(warning,))


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(
            v1alpha1(replicas=2, template=template(restartPolicy="Never")),
            id="v1alpha1: a policy in the template, which is where it belongs",
        ),
        pytest.param(
            annotated(old("v1alpha2", worker={"restartPolicy": "Never"}), "v2beta1"),
            id="v1alpha2: what counts because the job was written in v2beta1",
        ),
    ],
)
def test_what_has_an_effect_needs_no_warning(job):
    assert created(job) == Admission(allowed=True)


def test_an_update_repeats_no_warning():
    before = old("v1", cleanPodPolicy="All")
    after = changed(before, "spec.runPolicy", {"backoffLimit": 3})
    assert [each.partition(":")[0] for each in updated(before, after).warnings] == [
        "spec.runPolicy.backoffLimit"
    ]


# --- the version that a job was written in


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(old("v1"), old("v1"), id="hidden from its own version"),
        pytest.param(old("v1"), annotated(old("v1"), "v1"), id="spelled out by its own version"),
        pytest.param(annotated(mpijob(), "v1"), annotated(mpijob(), "v1"), id="kept by another"),
        pytest.param({}, annotated(mpijob(), "v1"), id="given at creation"),
        pytest.param({}, mpijob(), id="absent at creation"),
    ],
)
def test_the_version_stays_without_a_warning(before, after):
    request = {"operation": "UPDATE", "object": after, "oldObject": before or None}
    assert mutate(request) == Admission(allowed=True)


KEY = "/metadata/annotations/mpi-operator.kubeflow.org~1written-in"


@pytest.mark.parametrize(
    ("before", "after", "version", "patch"),
    [
        pytest.param(
            annotated(mpijob(), "v1"),
            mpijob(),
            "v1",
            {"op": "add", "path": "/metadata/annotations", "value": {WRITTEN_IN: "v1"}},
            id="dropped with all annotations",
        ),
        pytest.param(
            annotated(mpijob(), "v1"),
            changed(mpijob(), "metadata.annotations", {"a": "b"}),
            "v1",
            {"op": "add", "path": KEY, "value": "v1"},
            id="dropped",
        ),
        pytest.param(
            annotated(mpijob(), "v1"),
            annotated(mpijob(), "v1alpha1"),
            "v1",
            {"op": "add", "path": KEY, "value": "v1"},
            id="changed",
        ),
        pytest.param(
            old("v1"),
            annotated(old("v1"), "v2beta1"),
            "v1",
            {"op": "remove", "path": KEY},
            id="set in its own version",
        ),
        pytest.param(
            annotated(old("v1"), "v2beta1"),
            old("v1"),
            "v2beta1",
            {"op": "add", "path": "/metadata/annotations", "value": {WRITTEN_IN: "v2beta1"}},
            id="dropped by another version",
        ),
    ],
)
def test_the_version_is_restored_with_a_warning(before, after, version, patch):
    admission = mutate({"operation": "UPDATE", "object": after, "oldObject": before})
    assert admission.allowed
    assert admission.patch == (patch,)
    (warning,) = admission.warnings
    assert warning.endswith(f": keeps {version} behaviour; recreate the job to change it")


# --- whatever comes

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("spec", "mpiReplicaSpecs", "Worker", "template", "containers", "annotations"),
                    *("replicas", "gpus", "runPolicy", "restartPolicy", WRITTEN_IN),
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.sampled_from(VERSIONS), JSON, JSON, JSON)
def test_any_json_gets_an_answer(version, metadata, spec, other):
    job = {"apiVersion": f"kubeflow.org/{version}", "metadata": metadata, "spec": spec}
    stored = {"apiVersion": f"kubeflow.org/{version}", "metadata": other, "spec": other}
    for before in (None, other, stored):
        request = {"object": job, "oldObject": before}
        assert isinstance(validate(request, EIGHT).allowed, bool)
        assert mutate(request).allowed
