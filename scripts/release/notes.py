"""Release notes: the section of the changelog about one version."""

import re

from scripts.release.source import NotReleasable

_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)\s]+)\)")


def notes(changelog: str, version: str, *, links: str = "") -> str:
    """The section of a version; of a development version, what is not released yet.

    `links` is the address of the repository's files, for links that are relative there.
    """
    wanted = "Unreleased" if ".dev" in version else version
    for section in re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]:
        heading, _, text = section.partition("\n")
        if heading.split()[0].strip("[]") == wanted:
            return f"# MPI Operator {version}\n\n{_absolute(text.strip(), links)}\n"
    raise NotReleasable(f"CHANGELOG.md has no section {wanted}")


def _absolute(text: str, links: str) -> str:
    return _LINK.sub(rf"]({links.rstrip('/')}/\1)", text) if links else text
