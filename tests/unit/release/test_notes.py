"""Release notes from the changelog."""

from pathlib import Path

import pytest

from scripts.release.notes import notes
from scripts.release.source import NotReleasable

ROOT = Path(__file__).parents[3]
CHANGELOG = """\
# Changelog

## Unreleased

- Something [new](docs/new.md).

## [1.1.0] - 2026-02-01

- Something [else](docs/else.md#here), see [there](https://example.com/there) and [here](#fixed).

### Fixed

- A bug.

## 1.0.0

- The first.
"""


def test_the_notes_are_the_section_of_the_version():
    assert notes(CHANGELOG, "1.0.0") == "# MPI Operator 1.0.0\n\n- The first.\n"


def test_a_section_may_have_a_date_and_headings():
    text = notes(CHANGELOG, "1.1.0")
    assert text.endswith("### Fixed\n\n- A bug.\n")
    assert "The first" not in text


def test_a_development_version_has_what_is_not_released():
    assert "Something [new](docs/new.md)" in notes(CHANGELOG, "1.2.0.dev0")


def test_relative_links_lead_to_the_files_of_the_repository():
    text = notes(CHANGELOG, "1.1.0", links="https://example.com/files/")
    assert "[else](https://example.com/files/docs/else.md#here)" in text
    assert "[there](https://example.com/there) and [here](#fixed)" in text


def test_a_version_without_a_section_is_not_released():
    with pytest.raises(NotReleasable, match=r"no section 1\.0$"):
        notes(CHANGELOG, "1.0")


def test_our_own_changelog_has_notes_for_the_next_version():
    assert "**`mpi-operator`**" in notes((ROOT / "CHANGELOG.md").read_text(), "0.1.0.dev0")
