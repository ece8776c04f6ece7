"""Make a release: python -m scripts.release [--output DIRECTORY] [--images NAME…]."""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from devcluster.binaries import say_to_stderr as say
from devcluster.image_builds import catalog
from scripts.release import (
    chart_package,
    checksums,
    image_archives,
    manifests,
    notes,
    python_packages,
    sbom,
)
from scripts.release.source import NotReleasable, Source, export

CHECKOUT = Path(__file__).parents[2]


def main(arguments: Sequence[str] | None = None) -> int:
    """Make everything, and return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory() as directory:
            source = export(CHECKOUT, Path(directory), options.tag)
            _make(source, options)
    except NotReleasable as error:
        say(f"error: {error}")
        return 1
    return 0


def _make(source: Source, options: argparse.Namespace) -> None:
    output: Path = options.output
    # First, because it may refuse.
    changelog = (source.directory / "CHANGELOG.md").read_text()
    text = notes.notes(changelog, source.version, links=options.links)
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    (output / "RELEASE_NOTES.md").write_text(text)
    wheel = python_packages.build(source, output / "python")
    chart_package.build(source.directory / "deploy/chart", output / "chart", source.epoch)
    manifests.write(source, output / "manifests")
    images = image_archives.write(options.images, output / "images", source.epoch)
    sbom.of_wheel(options.tools, source, wheel, output / "sbom")
    sbom.of_images(options.tools, source, images, output / "sbom")
    checksums.write(output)
    say(f"mpi-operator {source.version} is in {output}/")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.release", description="Make a release of the current commit."
    )
    parser.add_argument(
        "--output", type=Path, default=CHECKOUT / "dist", metavar="DIRECTORY", help="Default: dist"
    )
    parser.add_argument(
        "--images",
        nargs="*",
        choices=list(catalog.released()),
        default=list(catalog.released()),
        metavar="NAME",
        help="Images to include; default: all",
    )
    parser.add_argument("--tag", default="", help="Fail unless this is the tag of the version")
    parser.add_argument(
        "--links", default="", metavar="URL", help="Address of the files that the notes link to"
    )
    parser.add_argument(
        "--tools",
        type=Path,
        default=CHECKOUT / ".venv-release",
        metavar="DIRECTORY",
        help="Environment with cyclonedx-py; default: .venv-release",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
