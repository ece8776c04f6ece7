"""The docs site: `make docs` builds it with Sphinx, from the Markdown files of the repository.

Pages are written for people who read them in a checkout, so this adapts them: the navigation comes
from the table in README.md, and links to directories lead to their README.md. Every warning fails
the build: a link that leads nowhere, or a page that the table does not list.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[1]

project = "MPI Operator"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = project
html_show_copyright = False
html_show_sphinx = False
root_doc = "README"
include_patterns = ["*.md", "docs/**.md", "examples/**.md", "deploy/chart/README.md"]
exclude_patterns = [".*", "dist", "src", "tests"]
myst_heading_anchors = 4

_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s#:]+)\)")
_CAPTION = re.compile(r"^\| \*\*(.+?)\*\* \|")
_PAGE = re.compile(r"^\| \[[^\]]+\]\(([^)]+)\)")


def adapt(app: Sphinx, name: str, source: list[str]) -> None:
    """Change what works in a checkout into what works on a site."""
    path = ROOT / f"{name}.md"
    text = _LINK.sub(lambda found: _directory_link(path.parent, found), source[0])
    if name == root_doc:
        text += "".join(_navigation(source[0]))
    elif path.name == "README.md":
        text += _toctree("", _below(path))
    source[0] = text


def _directory_link(here: Path, found: re.Match[str]) -> str:
    label, target = found.groups()
    if not (here / target).is_dir():
        return found[0]
    if not (here / target / "README.md").exists():
        return label
    return f"[{label}]({target.rstrip('/')}/README.md)"


def _navigation(readme: str) -> Iterator[str]:
    """A part of the navigation for each part of the table of contents."""
    caption, pages = "Start", ["Overview <self>"]
    for line in readme.partition("\n## Contents\n")[2].splitlines():
        if part := _CAPTION.match(line):
            yield _toctree(caption, pages)
            caption, pages = part[1], []
        elif page := _PAGE.match(line):
            pages += _document(page[1])
    yield _toctree(caption, pages)


def _document(target: str) -> list[str]:
    file = ROOT / target / "README.md" if (ROOT / target).is_dir() else ROOT / target
    return [f"/{file.relative_to(ROOT).with_suffix('')}"] if file.exists() else []


def _below(readme: Path) -> list[str]:
    """The other pages of a directory, and the directories in it."""
    found = sorted({*readme.parent.glob("*.md"), *readme.parent.glob("*/README.md")} - {readme})
    return [f"/{file.relative_to(ROOT).with_suffix('')}" for file in found]


def _toctree(caption: str, pages: list[str]) -> str:
    if not pages:
        return ""
    options = [":hidden:", *([f":caption: {caption}"] if caption else []), ""]
    return "\n".join(("\n\n```{toctree}", *options, *pages, "```\n"))


def write_index(app: Sphinx, error: Exception | None) -> None:
    """The page that web servers show first."""
    refresh = f'<meta http-equiv="refresh" content="0; url={root_doc}.html">'
    (Path(app.outdir) / "index.html").write_text(f"<!doctype html>{refresh}\n")


def setup(app: Sphinx) -> None:
    app.connect("source-read", adapt)
    app.connect("build-finished", write_index)
