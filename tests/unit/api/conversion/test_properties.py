"""What holds for every job in every version, whatever somebody writes into it."""

import copy
from datetime import UTC, datetime
from itertools import permutations
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_operator.api import annotations as names
from mpi_operator.api.conversion import OURS, VERSIONS, UnitSettings, convert
from mpi_operator.api.conversion.stored_form import stored_form
from mpi_operator.api.types import (
    Condition,
    ConditionStatus,
    MPIJobStatus,
    ReplicaStatus,
    ReplicaStatuses,
    status_manifest,
)
from tests.support.version_strategies import GARBAGE, OLD, jobs, without_ours

HUB = VERSIONS[0]
JOB = {"apiVersion": f"kubeflow.org/{HUB}", "kind": "MPIJob", "metadata": {"name": "pi"}}
COUNTS = st.integers(0, 3)
PAIRS = tuple(permutations(VERSIONS, 2))
OLD_PAIRS = tuple(permutations(OLD, 2))
UNITS = st.builds(UnitSettings, st.integers(1, 8), st.integers(1, 8), st.sampled_from(["cpu", "a"]))
# With books that somebody has made up.
HOSTILE = st.dictionaries(
    st.sampled_from([*VERSIONS, "v7"]),
    GARBAGE
    | st.lists(
        GARBAGE
        | st.tuples(
            st.sampled_from(
                ["", "/", "/spec", "/spec/runPolicy", "/metadata", "/metadata/name", "/spec/0"]
            )
            | st.text("/spec~01", max_size=8),
            st.none() | st.just("00000000"),
            GARBAGE,
        ),
        max_size=3,
    ),
).map(lambda kept: {names.CONVERTED_FIELDS: msgspec.json.encode(kept).decode()})


# As our operator writes them: every count is there.
COUNTED = st.builds(ReplicaStatus, active=COUNTS, succeeded=COUNTS, failed=COUNTS)
KINDS = ("Created", "Running", "Failed", "Succeeded")
STATUSES = st.builds(
    MPIJobStatus,
    conditions=st.lists(
        st.builds(
            Condition, type=st.sampled_from(KINDS), status=st.sampled_from([*ConditionStatus])
        ),
        unique_by=lambda each: each.type,
    ).map(tuple),
    replica_statuses=st.builds(
        ReplicaStatuses, launcher=st.none() | COUNTED, worker=st.none() | COUNTED
    ),
    start_time=st.none() | st.just(datetime(2026, 1, 31, tzinfo=UTC)),
    observed_generation=st.none() | st.integers(1, 9),
    selector=st.sampled_from(["", "a=b"]),
).map(status_manifest)


def encoded(job: Any) -> bytes:
    """The job without its status, which is converted and not kept."""
    job = {name: each for name, each in without_ours(job).items() if name != "status"}
    return msgspec.json.encode(job, order="sorted")


@pytest.mark.parametrize("version", OLD)
@given(data=st.data(), units=UNITS, later=UNITS)
def test_a_job_comes_back_from_the_hub_byte_by_byte(version, data, units, later):
    job = data.draw(jobs(version))
    back = convert(convert(job, HUB, units), version, later)
    assert encoded(back) == encoded(job)


@pytest.mark.parametrize("version", OLD)
@given(status=STATUSES)
def test_a_status_of_our_operator_comes_back_from_every_version(version, status):
    job = {**JOB, "status": status}
    assert convert(convert(job, version), HUB)["status"] == status


@pytest.mark.parametrize("version", OLD)
@given(status=STATUSES)
def test_each_version_shows_the_same_status_again(version, status):
    shown = convert({**JOB, "status": status}, version)
    assert convert(convert(shown, HUB), version)["status"] == shown["status"]


@pytest.mark.parametrize("version", OLD)
@given(status=STATUSES)
def test_a_forged_annotation_does_not_change_a_status(version, status):
    entries = [["/status", None, {"conditions": []}], ["/status/startTime", None, "2026"]]
    books = msgspec.json.encode(dict.fromkeys(VERSIONS, entries)).decode()
    job = {**JOB, "metadata": {"name": "pi", "annotations": {names.CONVERTED_FIELDS: books}}}
    old = {**job, "apiVersion": f"kubeflow.org/{version}"}
    assert convert(convert({**job, "status": status}, version), HUB)["status"] == status
    assert "status" not in convert(job, version)
    assert "status" not in convert(old, HUB)


@pytest.mark.parametrize("version", OLD)
@given(data=st.data())
def test_a_job_with_made_up_books_comes_back_as_well(version, data):
    job = data.draw(jobs(version, HOSTILE))
    assert encoded(convert(convert(job, HUB), version)) == encoded(job)


@pytest.mark.parametrize(("version", "other"), PAIRS)
@given(data=st.data(), units=UNITS)
def test_a_job_comes_back_from_any_version(version, other, data, units):
    job = data.draw(jobs(version))
    assert encoded(convert(convert(job, other, units), version, units)) == encoded(job)


@pytest.mark.parametrize(("version", "other"), OLD_PAIRS)
@given(data=st.data(), units=UNITS)
def test_reading_a_job_in_another_version_and_writing_it_back_does_not_change_what_is_stored(
    version, other, data, units
):
    stored = convert(data.draw(jobs(version)), HUB, units)
    again = convert(convert(stored, other, units), HUB, units)
    assert (again["metadata"], encoded(again)) == (stored["metadata"], encoded(stored))


@pytest.mark.parametrize("version", OLD)
@given(data=st.data(), units=UNITS)
def test_reading_and_writing_it_in_its_own_version_does_not_change_what_is_stored_either(
    version, data, units
):
    stored = convert(data.draw(jobs(version)), HUB, units)
    again = convert(convert(stored, version, units), HUB, units)
    assert encoded(again) == encoded(stored)


@pytest.mark.parametrize("version", OLD)
@given(data=st.data(), units=UNITS)
def test_the_api_server_has_nothing_to_prune_or_to_default(version, data, units):
    hub = convert(data.draw(jobs(version)), HUB, units)
    assert stored_form(hub) == hub


@given(jobs(HUB))
def test_pruning_and_defaulting_twice_is_doing_it_once(job):
    once = stored_form(job)
    assert stored_form(once) == once


@pytest.mark.parametrize("version", OLD)
@given(data=st.data())
def test_only_annotations_of_the_conversion_change_in_the_metadata(version, data):
    job = data.draw(jobs(HUB))
    converted = convert(job, version)
    assert without_ours(converted)["metadata"] == without_ours(job)["metadata"]


@given(pair=st.sampled_from(PAIRS), data=st.data())
def test_the_argument_never_changes(pair, data):
    version, other = pair
    job = data.draw(jobs(version, HOSTILE))
    before = copy.deepcopy(job)
    convert(job, other)
    assert job == before


@given(pair=st.sampled_from(PAIRS), data=st.data())
def test_anything_can_be_converted(pair, data):
    version, other = pair
    parts = ("metadata", "spec", "status", "kind")
    garbage = data.draw(st.dictionaries(st.sampled_from(parts), GARBAGE))
    converted = convert({**garbage, "apiVersion": f"kubeflow.org/{version}"}, other)
    assert converted["apiVersion"] == f"kubeflow.org/{other}"


def test_all_annotations_of_the_conversion_have_the_prefix_of_the_operator():
    assert all(name.startswith("mpi-operator.kubeflow.org/") for name in OURS)
