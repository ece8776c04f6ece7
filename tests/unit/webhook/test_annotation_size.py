"""Jobs with more books than Kubernetes allows for annotations."""

import pytest

from mpi_operator.api.annotations import CONVERTED_FIELDS
from mpi_operator.api.conversion import VERSIONS, convert
from mpi_operator.webhook.annotation_size import bounded, size_error
from tests.support.mpijobs import changed, mpijob
from tests.support.versions import v1

LIMIT = 256 * 1024


def noted(size: int):
    """A job whose books, with their name, have a size."""
    books = "é" + "x" * (size - len(CONVERTED_FIELDS) - 2)
    return changed(v1(), "metadata.annotations", {CONVERTED_FIELDS: books})


@pytest.mark.parametrize(("size", "is_refused"), [(LIMIT, False), (LIMIT + 1, True)])
def test_the_limit_is_that_of_kubernetes(size, is_refused):
    assert bool(size_error(v1(), noted(size))) is is_refused
    assert (bounded(v1(), noted(size)) != noted(size)) is is_refused


def test_large_annotations_of_the_author_are_not_ours_to_refuse():
    job = changed(v1(), "metadata.annotations", {"example.com/a": "x" * LIMIT})
    assert (size_error(job, job), bounded(job, job)) == ("", job)


def annotations_size(job):
    found = job["metadata"].get("annotations", {})
    return sum(len(part.encode()) for each in found.items() for part in each)


@pytest.mark.parametrize("version", VERSIONS[1:])
@pytest.mark.parametrize("room", [0, 10, 60, 100, 200, 1000])
def test_a_job_whose_annotations_leave_no_room_for_ours_can_be_read(version, room):
    """An API server refuses annotations that a conversion has changed and made too large."""
    name = "example.com/a"
    filler = {name: "x" * (LIMIT - room - len(name))}
    job = changed(mpijob(), "metadata.annotations", filler)
    shown = bounded(job, convert(job, version))
    is_unchanged = shown["metadata"]["annotations"] == job["metadata"]["annotations"]
    assert is_unchanged or annotations_size(shown) <= LIMIT
    assert shown["apiVersion"] == f"kubeflow.org/{version}"


def test_a_job_that_leaves_no_room_cannot_be_written_in_an_old_version():
    job = changed(v1(), "metadata.annotations", {"example.com/a": "x" * (LIMIT - 20)})
    assert "too much" in size_error(job, convert(job, "v2beta1"))


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_what_is_shown_without_books_cannot_be_written(version):
    shown = bounded(
        mpijob(),
        changed(
            convert(mpijob(), version), "metadata.annotations", {CONVERTED_FIELDS: "x" * LIMIT}
        ),
    )
    assert f"cannot be changed in {version}" in size_error(shown, convert(shown, "v2beta1"))
