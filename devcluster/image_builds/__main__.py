"""Build images: python -m devcluster.image_builds [NAME…]; prints the paths of their archives."""

import argparse
import sys
from collections.abc import Sequence

from devcluster.binaries import BuildFailed, CannotBuild
from devcluster.binaries import say_to_stderr as say
from devcluster.image_builds import building, catalog
from devcluster.image_builds.failures import ImageNotBuilt

_EXAMPLES = """\
examples:
  # all that nodes want (7 minutes the first time, then nothing)
  python -m devcluster.image_builds
  # one, and onto the nodes of a cluster with it
  python -m devcluster load $(python -m devcluster.image_builds pi-openmpi)
  # what there is
  python -m devcluster.image_builds --list
  # forget all but the archives of this checkout
  python -m devcluster.image_builds --clean
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Build and return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        if options.list:
            _list()
        elif options.clean:
            _clean()
        else:
            _build(options.names)
        return 0
    except CannotBuild as error:
        say(f"Not built: {error}" if options.if_possible else f"error: {error}")
        return 0 if options.if_possible else 1
    except (ImageNotBuilt, BuildFailed) as error:
        say(f"error: {error}")
        return 1


def _build(names: Sequence[str]) -> None:
    for archive in building.provide(names).values():
        print(archive)


def _list() -> None:
    for image in catalog.IMAGES.values():
        state = "built" if building.archive_of(image).exists() else "-"
        print(
            f"{image.name:24}{' '.join(image.tags):48}{state if image.is_archived else ''}".rstrip()
        )


def _clean() -> None:
    for path in building.clean():
        say(f"Removed {path}.")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m devcluster.image_builds",
        description="The images of this project, built here and kept outside the checkout.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "names", nargs="*", type=_image, metavar="NAME", help="all, if none is given"
    )
    parser.add_argument(
        "--if-possible", action="store_true", help="succeed where nothing can be built, and say why"
    )
    parser.add_argument("--list", action="store_true", help="show what there is, build nothing")
    parser.add_argument("--clean", action="store_true", help="remove what is not needed now")
    return parser


def _image(name: str) -> str:
    if name not in catalog.IMAGES:
        raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(catalog.IMAGES)}")
    return name


if __name__ == "__main__":
    sys.exit(main())
