"""Decoding returns a valid job or raises InvalidJob, whatever it is given."""

import string
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_operator.api import InvalidJob, decode_job, decode_leniently, manifest, warnings
from mpi_operator.api.types import MPIJob
from tests.support.mpijobs import changed, mpijob, template

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=2**62)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["None", "OnFailure", "OpenMPI", "2026-01-01T00:00:00Z", "1Gi"])
)
# Garbage under the names of real fields is decoded further than under random names.
WORDS = """
    apiVersion kind metadata name labels spec status conditions type mpiReplicaSpecs Launcher Worker
    Boss replicas restartPolicy template containers env ports runPolicy suspend schedulingPolicy
    minResources slotsPerWorker replicaStatuses active startTime
"""
NAMES = st.sampled_from(WORDS.split())
GARBAGE = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(NAMES | st.text(max_size=3), inner, max_size=4)
        | st.dictionaries(st.integers() | st.booleans(), inner, max_size=2)
    ),
    max_leaves=20,
)
PLACES = st.sampled_from(
    [
        "metadata",
        "metadata.name",
        "spec",
        "spec.mpiReplicaSpecs",
        "spec.mpiReplicaSpecs.Launcher",
        "spec.mpiReplicaSpecs.Worker",
        "spec.mpiReplicaSpecs.Worker.replicas",
        "spec.mpiReplicaSpecs.Worker.template",
        "spec.mpiReplicaSpecs.Worker.template.spec",
        "spec.mpiReplicaSpecs.Worker.template.spec.containers",
        "spec.mpiReplicaSpecs.Worker.template.spec.containers.0",
        "spec.runPolicy",
        "spec.slotsPerWorker",
        "status",
    ]
)


def decoded(garbage: object) -> MPIJob | InvalidJob:
    try:
        return decode_job(garbage)  # type: ignore[arg-type]
    except InvalidJob as invalid:
        return invalid


@given(GARBAGE)
def test_garbage_is_a_job_or_invalid_and_nothing_else(garbage):
    assert isinstance(decoded(garbage), MPIJob | InvalidJob)


@given(PLACES, GARBAGE)
def test_garbage_in_a_valid_job_is_too(place, garbage):
    broken = with_garbage(mpijob(), place.split("."), garbage)
    assert isinstance(decoded(broken), MPIJob | InvalidJob)
    assert isinstance(decode_leniently(broken), MPIJob)
    assert isinstance(warnings(broken), list)


def with_garbage(good: Any, place: list[str], garbage: object) -> Any:
    """A part of a job with something else in its place."""
    if not place:
        return garbage
    key = int(place[0]) if isinstance(good, list) else place[0]
    good[key] = with_garbage(good[key] if len(place) > 1 else None, place[1:], garbage)
    return good


@given(GARBAGE)
def test_warnings_about_garbage_are_a_list(garbage):
    assert isinstance(warnings(garbage), list)


def test_nesting_without_end_is_no_problem():
    bottomless: list[object] = []
    for _ in range(100_000):
        bottomless = [bottomless]
    job = decode_job(changed(mpijob(), "spec.colour", None) | {"more": bottomless})
    assert job == decode_job(mpijob())


def jobs() -> st.SearchStrategy[dict[str, object]]:
    """Manifests of valid jobs."""
    return st.builds(
        lambda name, workers, template_labels, spec: mpijob(
            name,
            worker={"replicas": workers, "template": template() | {"metadata": template_labels}},
            **spec,
        ),
        name=st.text(string.ascii_lowercase, min_size=1, max_size=30),
        workers=st.integers(1, 10_000),
        template_labels=st.fixed_dictionaries(
            {}, optional={"labels": st.dictionaries(st.text(max_size=3), st.text(max_size=3))}
        ),
        spec=st.fixed_dictionaries(
            {},
            optional={
                "slotsPerWorker": st.integers(0, 2**31 - 1),
                "runLauncherAsWorker": st.booleans(),
                "mpiImplementation": st.sampled_from(["OpenMPI", "Intel", "MPICH"]),
                "sshAuthMountPath": st.just("/home/me/.ssh"),
                "runPolicy": st.fixed_dictionaries(
                    {},
                    optional={
                        "suspend": st.booleans(),
                        "cleanPodPolicy": st.sampled_from(["All", "None", "Running"]),
                        "backoffLimit": st.integers(0, 10),
                    },
                ),
            },
        ),
    )


@given(jobs())
def test_a_job_survives_encoding_and_decoding(raw):
    job = decode_job(raw)
    assert decode_job(manifest(job)) == job
    assert msgspec.json.decode(msgspec.json.encode(job), type=MPIJob) == job


@given(jobs())
def test_decoding_does_not_change_the_manifest(raw):
    before = msgspec.json.encode(raw)
    decode_job(raw)
    assert msgspec.json.encode(raw) == before


def test_templates_keep_unknown_fields():
    odd = template(fromTheFuture={"a": [1]})
    worker = decode_job(mpijob(worker={"template": odd})).spec.worker
    assert worker
    assert worker.template == odd


def test_nulls_inside_a_template_are_dropped():
    worker = decode_job(mpijob(worker={"template": template(volumes=None)})).spec.worker
    assert worker
    assert worker.template == template()


def test_a_status_is_written_with_zeros_and_without_deprecated_fields():
    status = {
        "conditions": [{"type": "Created", "status": "True", "reason": "MPIJobCreated"}],
        "replicaStatuses": {"Launcher": {"succeeded": 1}},
        "startTime": "2026-01-01T00:00:00Z",
    }
    job = decode_job(mpijob() | {"status": status})
    assert job.status.start_time == datetime(2026, 1, 1, tzinfo=UTC)
    counts = {"active": 0, "succeeded": 1, "failed": 0}
    assert manifest(job)["status"] == status | {"replicaStatuses": {"Launcher": counts}}


def test_a_new_job_has_no_conditions_field():
    assert "conditions" not in manifest(decode_job(mpijob())).get("status", {})


def test_an_invalid_job_still_has_a_status():
    status = {"conditions": [{"type": "Created", "status": "True"}]}
    job = decode_leniently(mpijob("1pi", slotsPerWorker="x") | {"status": status})
    assert (job.metadata.name, job.status.conditions[0].type) == ("1pi", "Created")


def messages(raw: object) -> list[str]:
    return list(map(str, warnings(raw)))  # type: ignore[arg-type]


WORKER = "spec.mpiReplicaSpecs[Worker].template"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(mpijob(), [], id="a plain job has none"),
        pytest.param(
            mpijob(worker={"template": template(restartPolicy="Always")}),
            [f"{WORKER}.spec.restartPolicy: overridden by the restartPolicy next to the template"],
            id="a restart policy in a template",
        ),
        pytest.param(
            mpijob(worker={"template": template() | {"metadata": {"name": "me"}}}),
            [
                f"{WORKER}.metadata.name: ignored; "
                "pods take only labels and annotations from their template"
            ],
            id="a name in a template",
        ),
        pytest.param(
            mpijob(worker={"template": template() | {"metadata": {"creationTimestamp": None}}}),
            [],
            id="what Go writes into empty metadata",
        ),
        pytest.param(
            changed(mpijob(), "spec.mpiReplicaSpecs.Boss", {}),
            ["spec.mpiReplicaSpecs[Boss]: ignored; the roles are Launcher and Worker"],
            id="an unknown role",
        ),
        pytest.param(
            mpijob(worker={"template": template(nodeSelecter={})}),
            [f"{WORKER}.spec.nodeSelecter: unknown field, ignored; did you mean nodeSelector?"],
            id="a typo in a template",
        ),
        pytest.param(
            mpijob(frobnicate=True),
            ["spec.frobnicate: unknown field, ignored"],
            id="a field like no other",
        ),
        pytest.param(
            mpijob(cleanPodPolicy="All"),
            ["spec.cleanPodPolicy: ignored here; move it to spec.runPolicy"],
            id="a field of older versions",
        ),
        pytest.param(
            mpijob(slotsPerWorker=0),
            ["spec.slotsPerWorker: with 0 slots no rank can run"],
            id="no slots",
        ),
        pytest.param(
            changed(mpijob(), "metadata.managedFields", []), [], id="metadata that we do not use"
        ),
    ],
)
def test_warnings(raw, expected):
    assert messages(raw) == expected
