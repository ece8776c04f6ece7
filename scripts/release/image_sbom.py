"""Writes the bill of materials of an image archive: its Debian and its Python packages.

python image_sbom.py ARCHIVE TARGET

Runs in the environment of cyclonedx-py, whose library writes the file.
"""

import json
import os
import sys
import tarfile
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from email.message import Message
from email.parser import HeaderParser
from hashlib import sha256
from pathlib import Path

from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

_DPKG = "var/lib/dpkg/status"


def main(archive: str, target: str) -> None:
    tag, files = image_files(Path(archive))
    Path(target).write_text(bill(tag, packages(files)))


def image_files(archive: Path) -> tuple[str, dict[str, str]]:
    """The tag of an image, and the files that list its packages. Later layers win."""
    found: dict[str, str] = {}
    with tarfile.open(archive) as image:
        [manifest] = json.loads(_read(image, "manifest.json"))
        for layer in manifest["Layers"]:
            with tarfile.open(fileobj=image.extractfile(layer)) as files:
                found.update(_listings(files))
    return manifest["RepoTags"][0], found


def _listings(layer: tarfile.TarFile) -> Iterator[tuple[str, str]]:
    for entry in layer:
        name = entry.name.removeprefix("./")
        is_listing = name == _DPKG or name.endswith(".dist-info/METADATA")
        if entry.isfile() and is_listing:
            yield name, _read(layer, entry)


def _read(archive: tarfile.TarFile, entry: str | tarfile.TarInfo) -> str:
    content = archive.extractfile(entry)
    if content is None:
        raise ValueError(f"{entry} is not a file")
    return content.read().decode("utf-8", "replace")


def packages(files: dict[str, str]) -> Iterator[PackageURL]:
    """The packages that these files list."""
    for name, text in files.items():
        if name == _DPKG:
            yield from map(_debian, filter(_is_installed, _paragraphs(text)))
        else:
            facts = HeaderParser().parsestr(text)
            yield PackageURL("pypi", name=facts["Name"].lower(), version=facts["Version"])


def _paragraphs(text: str) -> Iterator[Message]:
    return (HeaderParser().parsestr(each) for each in text.strip().split("\n\n"))


def _is_installed(package: Message) -> bool:
    return (package["Status"] or "").endswith(" installed")


def _debian(package: Message) -> PackageURL:
    qualifiers = {"arch": package["Architecture"]}
    return PackageURL("deb", "debian", package["Package"], package["Version"], qualifiers)


def bill(tag: str, found: Iterator[PackageURL]) -> str:
    """The bill of materials. The same packages give the same text."""
    name, _, version = tag.rpartition(":")
    bom = Bom(serial_number=uuid.UUID(bytes=sha256(tag.encode()).digest()[:16], version=4))
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    bom.metadata.timestamp = datetime.fromtimestamp(epoch, UTC)
    bom.metadata.component = Component(
        type=ComponentType.CONTAINER, name=name, version=version, bom_ref=tag
    )
    for each in found:
        bom.components.add(_component(each))
    bom.register_dependency(bom.metadata.component, bom.components)
    writer = make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6)
    return str(writer.output_as_string(indent=2)) + "\n"


def _component(package: PackageURL) -> Component:
    return Component(
        type=ComponentType.LIBRARY,
        name=package.name,
        version=package.version,
        purl=package,
        bom_ref=package.to_string(),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
