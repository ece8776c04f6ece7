"""Entries of the annotation: only the conversion should write them, but anybody can."""

from time import process_time
from typing import Any

import msgspec
import pytest

from mpi_operator.api import annotations as names
from mpi_operator.api.conversion import UnknownVersion, convert
from mpi_operator.api.conversion.lossless import difference, patched
from mpi_operator.api.conversion.stored_form import stored_form
from tests.unit.api.conversion.jobs import edited, kept, with_roles


def with_books(text):
    return edited(with_roles("v1"), {"metadata.annotations": {names.CONVERTED_FIELDS: text}})


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("{", id="no JSON"),
        pytest.param("[]", id="no object"),
        pytest.param('{"v2beta1": 5}', id="no list"),
        pytest.param(
            '{"v2beta1": [5, [], ["/spec"], [1, 2, 3], ["/spec", 5, 6, 7]]}', id="no entry"
        ),
        pytest.param('{"v2beta1": [["/nowhere/else", null, 1]]}', id="another root"),
        pytest.param('{"v2beta1": [["/metadata/name", null, "x"]]}', id="metadata"),
        pytest.param('{"v2beta1": [["/apiVersion", null, "x"]]}', id="the version"),
        pytest.param('{"v2beta1": [["/spec/no/such/place", null, 1]]}', id="no such place"),
        pytest.param('{"v2beta1": [["/spec/slotsPerWorker", "00000000", 9]]}', id="a wrong guard"),
        pytest.param('{"v2beta1": [["/spec/slotsPerWorker/x", null, 9]]}', id="below a number"),
        pytest.param(
            '{"v2beta1": [["/spec/mpiReplicaSpecs/Worker/template/spec/containers/9", null, 1]]}',
            id="an item that is not there",
        ),
        pytest.param(
            '{"v2beta1": [["/spec/mpiReplicaSpecs/Worker/template/spec/containers/'
            + "9" * 5000
            + '", null, 1]]}',
            id="a huge index",
        ),
        pytest.param('{"v2beta1": [["/spec", null, ' + "[" * 5000 + "]" * 5000 + "]]}", id="depth"),
        pytest.param('{"v2beta1": [["' + "/a" * 90_000 + '", null, 1]]}', id="a long place"),
        pytest.param(
            '{"v2beta1": [["/spec/x", null, ' + "[" * 600 + "]" * 600 + "]]}",
            id="more depth than an API server may get",
        ),
        pytest.param(
            '{"v2beta1": [["/spec/x", null, 1' + "0" * 309 + "]]}",
            id="a number that no API server can decode",
        ),
    ],
)
def test_whatever_does_not_fit_is_ignored(text):
    hub, plain = (convert(each, "v2beta1") for each in (with_books(text), with_roles("v1")))
    assert (hub["spec"], hub["metadata"]["name"]) == (plain["spec"], "pi")


def test_a_long_row_of_digits_in_a_text_is_kept():
    job = edited(with_roles("v1"), {"spec.x": "1" * 400})
    assert convert(convert(job, "v2beta1"), "v1") == job


def test_ten_thousand_entries_about_a_large_job_do_not_stop_the_webhook():
    entries = [["/spec", "00000000", 1]] * 10_000
    entries += [[f"/spec/made{index}", None, 1] for index in range(5_000)]
    books = msgspec.json.encode({"v2beta1": entries}).decode()
    large = {f"field{index}": "x" * 100 for index in range(5_000)}
    job = with_books(books)
    start = process_time()
    hub = convert({**job, "spec": {**job["spec"], "unknown": large}}, "v2beta1")
    assert hub["spec"]["made4999"] == 1
    assert process_time() - start < 10  # usually half a second


def test_many_places_of_a_large_group_do_not_stop_the_webhook():
    """Each would hash all of the group."""
    args = "/spec/mpiReplicaSpecs/Worker/template/spec/containers/0/args"
    entries = [[f"{args}/{index}", None] for index in range(3_000)]
    books = msgspec.json.encode({"v1": entries}).decode()
    job = edited(with_roles("v2beta1"), {"metadata.annotations": {names.CONVERTED_FIELDS: books}})
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["args"] = [
        "x" * 1_000_000
    ]
    start = process_time()
    convert(job, "v1")
    assert process_time() - start < 5  # usually a fraction of a second


def test_what_a_container_had_does_not_go_to_another_one_in_its_position():
    hub = stored_form(with_roles("v2beta1"))
    launcher, worker = (hub["spec"]["mpiReplicaSpecs"][role] for role in ("Launcher", "Worker"))
    for role in (launcher, worker):
        role["template"] = {"spec": {"containers": [{"name": "main", "image": "a"}]}}
    launcher["template"]["spec"]["containers"][0]["env"] = [{"name": "TOKEN", "value": "secret"}]
    read = convert(hub, "v1alpha1")
    assert convert(read, "v2beta1")["spec"] == hub["spec"]
    containers = [{"name": "sidecar", "image": "b"}, {"name": "main", "image": "a"}]
    changed = convert(edited(read, {"spec.template.spec.containers": containers}), "v2beta1")
    assert "secret" not in str(changed["spec"])


def test_a_job_that_is_nested_too_deeply_is_cut():
    deep: dict[str, Any] = {}
    innermost = deep
    for _ in range(20_000):
        innermost["a"] = innermost = {}
    hub = convert(edited(with_roles("v1"), {"spec.unknown": deep}), "v2beta1")
    assert hub["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 2


def test_an_entry_needs_no_more_than_a_place_and_a_guard():
    assert difference({"spec": {"a": 1, "b": 2}}, {"spec": {"b": 2}}, ()) == [
        ["/spec/a", "72c98abf"]
    ]


def test_names_with_slashes_and_tildes_are_places():
    mapped: dict[str, Any] = {"spec": {}}
    real = {"spec": {"a/b": {"~1": 1}, "c~/": None}}
    assert patched(mapped, difference(mapped, real, ()), ()) == real


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(1, True, id="true is no number"),
        pytest.param(1, 1.0, id="a fraction is no integer"),
        pytest.param([1, 2], [1, 2, 3], id="a longer list"),
        pytest.param([{"a": 1}], [{"a": 2}], id="inside an item"),
        pytest.param({}, None, id="null is no object"),
    ],
)
def test_small_differences_count(old, new):
    mapped, real = {"spec": old}, {"spec": new}
    found = patched(mapped, difference(mapped, real, ()), ())
    assert msgspec.json.encode(found) == msgspec.json.encode(real)


def test_a_group_is_dropped_as_a_whole():
    groups = ((("spec", "gpus"), ("spec", "replicas")),)
    mapped, real = {"spec": {"replicas": 2, "a": 1}}, {"spec": {"gpus": 16, "a": 2}}
    entries = difference(mapped, real, groups)
    assert patched(mapped, entries, groups) == real
    later = {"spec": {"replicas": 3, "a": 1}}
    assert patched(later, entries, groups) == {"spec": {"replicas": 3, "a": 2}}


def test_metadata_stays_clean():
    job = with_roles("v1")
    assert convert(convert(job, "v2beta1"), "v1")["metadata"] == job["metadata"]


def test_malformed_metadata_is_left_alone():
    job = {**with_roles("v1"), "metadata": ["a"]}
    assert convert(job, "v2beta1")["metadata"] == ["a"]


def test_the_same_version_is_the_same_job():
    job = with_books('{"v2beta1": []}')
    assert convert(job, "v1") == job


@pytest.mark.parametrize(
    "version",
    [
        pytest.param("kubeflow.org/v3", id="a version of the future"),
        pytest.param("batch/v1", id="another group"),
        pytest.param("v1", id="no group"),
        pytest.param(["kubeflow.org/v1"], id="no text"),
    ],
)
def test_an_unknown_version_is_refused_with_a_sentence(version):
    with pytest.raises(UnknownVersion, match="is not an API version of MPIJobs; use one of kubefl"):
        convert({"apiVersion": version}, "v2beta1")


def test_a_missing_version_is_a_missing_value():
    with pytest.raises(UnknownVersion, match=r"^Required value: use one of kubeflow\.org/v"):
        convert({"kind": "MPIJob"}, "v2beta1")


def test_an_unknown_target_is_refused_as_well():
    with pytest.raises(UnknownVersion, match="'v3' is not an API version of MPIJobs"):
        convert(with_roles("v1"), "v3")


def test_a_v2beta1_job_needs_no_books_in_v1_and_v1alpha2():
    hub = stored_form(with_roles("v2beta1", runPolicy={"backoffLimit": 2}))
    assert [kept(convert(hub, version)) for version in ("v1", "v1alpha2")] == [None, None]
