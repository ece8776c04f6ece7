"""Build images: python -m devcluster.image_builds [NAME…]; prints the paths of their archives."""

import argparse
import sys
from collections.abc import Sequence

from devcluster.binaries import BuildFailed, CannotBuild
from devcluster.binaries import say_to_stderr as say
from devcluster.image_builds import building, catalog
from devcluster.image_builds.debian import ImageNotBuilt

_EXAMPLES = """\
examples:
  # all images for nodes but those with Horovod (5 minutes the first time)
  python -m devcluster.image_builds
  # one image, loaded onto the nodes of a cluster
  python -m devcluster load $(python -m devcluster.image_builds pi-openmpi)
  # list them
  python -m devcluster.image_builds --list
  # remove all but the archives of this checkout
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
        description="Build the images of this project, and keep them outside the checkout.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "names", nargs="*", type=_image, metavar="NAME", help="Images to build; default: all"
    )
    parser.add_argument(
        "--if-possible",
        action="store_true",
        help="Exit with 0 if this machine cannot build, and print why",
    )
    parser.add_argument("--list", action="store_true", help="List the images and build nothing")
    parser.add_argument(
        "--clean", action="store_true", help="Remove all but the archives of this checkout"
    )
    return parser


def _image(name: str) -> str:
    if name not in catalog.IMAGES:
        raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(catalog.IMAGES)}")
    return name


if __name__ == "__main__":
    sys.exit(main())
