"""Builds missing images, each once, independent ones in parallel."""

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from devcluster import binaries, locks, packages
from devcluster.binaries import CannotBuild, Say, say_to_stderr
from devcluster.image_builds import catalog, debian, steps
from devcluster.image_builds.buildah import Buildah
from devcluster.image_builds.catalog import CHECKOUT, IMAGES, Image
from devcluster.image_builds.keys import key_of
from devcluster.image_builds.steps import Step
from devcluster.packages import Package

_PACKAGES = (Package("buildah", ("buildah",)), Package("mmdebstrap", ("mmdebstrap",)))
_ARCHIVES_KEPT = 3
_DEBIAN_SECONDS = "30 seconds"


def provide(names: Iterable[str] = (), *, say: Say = say_to_stderr) -> dict[str, Path]:
    """The archives of these images, or of all; missing ones are built."""
    chosen = list(names) or list(catalog.usual())
    wanted = {name: archive_of(IMAGES[name]) for name in chosen}
    if not _missing(wanted):
        return wanted
    directory().mkdir(parents=True, exist_ok=True)
    with locks.held(directory() / "lock", on_wait=lambda: say("images: waiting for another build")):
        # Once, because files may be edited during the build.
        keys = {image.name: key_of(image) for image in catalog.with_needs(chosen)}
        wanted = {name: _archive(name, keys[name]) for name in chosen}
        if missing := _missing(wanted):
            _require_root()
            packages.provide(_PACKAGES, say=say)
            _build(missing, keys, say)
    return wanted


def directory() -> Path:
    """The directory of the archives, and of buildah's storage."""
    return binaries.cache_directory().parent / "images"


def archive_of(image: Image) -> Path:
    """The path of the archive of an image, which may not exist yet."""
    return _archive(image.name, key_of(image))


def _archive(name: str, key: str) -> Path:
    return directory() / f"{name}-{key}.tar"


def clean() -> list[Path]:
    """Remove everything but the archives of this checkout; return the paths."""
    wanted = {archive_of(IMAGES[name]) for name in catalog.archived()}
    with locks.held(directory() / "lock"):
        removed = [path for path in directory().glob("*.tar") if path not in wanted]
        for path in removed:
            path.unlink()
        Buildah(directory() / "buildah").remove_everything()
    return removed


def _require_root() -> None:
    if os.geteuid() != 0:
        raise CannotBuild("Building images needs root, because their files belong to many users.")


def _missing(wanted: Mapping[str, Path]) -> list[str]:
    return [name for name, archive in wanted.items() if not archive.exists()]


def _build(names: Sequence[str], keys: Mapping[str, str], say: Say) -> None:
    buildah = Buildah(directory() / "buildah")
    _clear(buildah)
    images = catalog.with_needs(names)
    minutes = "5 minutes on 2 cores, 7 more with Horovod, once"
    say(f"images: {len(names)} to build, two at a time ({minutes})")
    debians = [
        _debian_step(buildah, suite)
        for suite in sorted({image.suite for image in images}, reverse=True)
    ]
    others = [
        _image_step(buildah, image, keys[image.name], is_named=image.name in names)
        for image in images
    ]
    steps.run([*debians, *others], say)
    _remove_outdated(buildah)


def _clear(buildah: Buildah) -> None:
    """Remove what a killed build has left. The caller holds the lock."""
    buildah.remove_containers()
    for place in directory().glob("work-*"):
        shutil.rmtree(place)
    for partial in directory().glob("*.partial"):
        partial.unlink()


def _debian_step(buildah: Buildah, suite: str) -> Step:
    key = debian.key_of(suite)

    def make() -> None:
        with _work_directory() as place:
            debian.make(suite, place / "root.tar")
            buildah.build_debian(place / "root.tar", [_cache_name(f"debian-{suite}", key)])

    return _once(
        buildah, Step(f"debian-{suite}", _DEBIAN_SECONDS, (), make), key, [f"debian:{suite}-slim"]
    )


def _image_step(buildah: Buildah, image: Image, key: str, *, is_named: bool) -> Step:
    def make() -> None:
        with _context(image) as context:
            buildah.build(
                context,
                CHECKOUT / image.dockerfile,
                [_cache_name(image.name, key)],
                dict(image.arguments),
                uses_pip=image.uses_pip,
                keeps_layers=image.keeps_layers,
            )

    needs = (*image.needs, f"debian-{image.suite}")
    step = _once(buildah, Step(image.name, image.usual, needs, make), key, image.tags)
    if not (image.is_archived or is_named):
        return step
    return _archived(buildah, step, key, image.tags[0])


def _once(buildah: Buildah, step: Step, key: str, tags: Sequence[str]) -> Step:
    """The step, skipped if its image is cached, with the tags that Dockerfiles use."""
    kept = _cache_name(step.name, key)

    def make() -> None:
        if not buildah.has(kept):
            step.make()
        buildah.tag(kept, tags)

    return Step(step.name, "" if buildah.has(kept) else step.usual, step.needs, make)


def _archived(buildah: Buildah, step: Step, key: str, tag: str) -> Step:
    """The step, followed by writing the archive for nodes."""
    archive = _archive(step.name, key)

    def make() -> None:
        step.make()
        if not archive.exists():
            partial = archive.with_suffix(".partial")
            buildah.write_archive(_cache_name(step.name, key), tag, partial)
            partial.rename(archive)

    return Step(step.name, step.usual or "a few seconds", step.needs, make)


def _remove_outdated(buildah: Buildah) -> None:
    """Remove images of earlier inputs. A few archives of each stay, for other checkouts."""
    current = {_cache_name(image.name, key_of(image)) for image in IMAGES.values()}
    current |= {_cache_name(f"debian-{suite}", debian.key_of(suite)) for suite in catalog.SUITES}
    kept = (name for name in buildah.names() if name.startswith(f"{_CACHE_PREFIX}/"))
    buildah.remove([name for name in kept if name not in current])
    for image in IMAGES.values():
        archives = sorted(directory().glob(f"{image.name}-{'?' * 12}.tar"), key=_age)
        for archive in archives[_ARCHIVES_KEPT:]:
            if archive != archive_of(image):
                archive.unlink()


def _age(path: Path) -> float:
    return -path.stat().st_mtime


_CACHE_PREFIX = "localhost/mpi-operator-build"


def _cache_name(name: str, key: str) -> str:
    """The name of an image in buildah's storage, as long as its inputs are the same."""
    return f"{_CACHE_PREFIX}/{name}:{key}"


@contextmanager
def _work_directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=directory(), prefix="work-") as place:
        yield Path(place)


@contextmanager
def _context(image: Image) -> Iterator[Path]:
    """The build context of an image, with the programs that it needs."""
    if not image.programs:
        yield image.directory
        return
    with _work_directory() as place:
        shutil.copytree(image.directory, place / "context")
        for name, path in binaries.provide(image.programs).items():
            shutil.copy2(path, place / "context" / name)
        yield place / "context"
