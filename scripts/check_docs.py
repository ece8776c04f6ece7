"""Checks the Markdown files: every link leads somewhere, and lines wrap at 120 characters.

python scripts/check_docs.py

Only links within the repository are followed: the check has to work without a network.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
WIDTH = 120
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"`[^`]*`")


def problems() -> Iterator[str]:
    for file in _files():
        for number, line in _prose(file):
            place = f"{file.relative_to(ROOT)}:{number}"
            if len(line) > WIDTH and not line.startswith(("|", "<!--")):
                yield f"{place}: {len(line)} characters, at most {WIDTH} are allowed"
            for target in _LINK.findall(_CODE.sub("", line)):
                if problem := _link_problem(file, target):
                    yield f"{place}: {target}: {problem}"


def _files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).exists()]


def _prose(file: Path) -> Iterator[tuple[int, str]]:
    """The numbered lines of a file that are not code."""
    is_code = False
    for number, line in enumerate(file.read_text().splitlines(), start=1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code:
            yield number, line


def _link_problem(file: Path, target: str) -> str:
    if re.match(r"[a-z]+:", target):
        return ""
    path, _, anchor = target.partition("#")
    linked = (file.parent / path).resolve() if path else file
    if not linked.exists():
        return "no such file"
    if anchor and linked.suffix == ".md" and anchor not in _anchors(linked):
        return "no such heading"
    return ""


@cache
def _anchors(file: Path) -> frozenset[str]:
    """The headings of a file, as GitHub turns them into anchors."""
    headings = (line.lstrip("#").strip() for _, line in _prose(file) if line.startswith("#"))
    return frozenset(re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings)


if __name__ == "__main__":
    found = list(problems())
    sys.exit("\n".join(found) or None)
