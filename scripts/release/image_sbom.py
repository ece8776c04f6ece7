"""Writes the bill of materials of an image archive: Debian and Python packages, and Go modules.

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
_METADATA = ".dist-info/METADATA"
_GO = b"\xff Go buildinf:"


def main(archive: str, target: str) -> None:
    tag, files = image_files(Path(archive))
    _host, *name = tag.split("/") if tag.count("/") == 2 else ("", tag)
    Path(target).write_text(bill("/".join(name), packages(files)))


def image_files(archive: Path) -> tuple[str, dict[str, bytes]]:
    """The tag of an image, and the files that tell its packages. Later layers win."""
    found: dict[str, bytes] = {}
    with tarfile.open(archive) as image:
        [manifest] = json.loads(_read(image, "manifest.json"))
        for layer in manifest["Layers"]:
            with tarfile.open(fileobj=image.extractfile(layer)) as files:
                found.update(_telling(files))
    return manifest["RepoTags"][0], found


def _telling(layer: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    for entry in layer:
        name = entry.name.removeprefix("./")
        is_listing = name == _DPKG or name.endswith(_METADATA)
        if entry.isfile() and (is_listing or entry.mode & 0o111):
            content = _read(layer, entry)
            if is_listing or _GO in content:
                yield name, content


def _read(archive: tarfile.TarFile, entry: str | tarfile.TarInfo) -> bytes:
    content = archive.extractfile(entry)
    if content is None:
        raise ValueError(f"{entry} is not a file")
    return content.read()


def packages(files: dict[str, bytes]) -> Iterator[PackageURL]:
    """The packages that these files tell."""
    for name, content in files.items():
        if name == _DPKG:
            yield from map(_debian, filter(_is_installed, _paragraphs(content.decode())))
        elif name.endswith(_METADATA):
            facts = HeaderParser().parsestr(content.decode("utf-8", "replace"))
            yield PackageURL("pypi", name=facts["Name"].lower(), version=facts["Version"])
        else:
            yield from _go_modules(content)


def _go_modules(program: bytes) -> Iterator[PackageURL]:
    """What Go's linker writes into a program: its own version, and the modules it was made of."""
    start = program.index(_GO) + 32
    version, start = _go_string(program, start)
    modules, _ = _go_string(program, start)
    yield PackageURL("golang", name="stdlib", version=version.decode().removeprefix("go"))
    # Between two marks of 16 bytes.
    for line in modules[16:-16].decode().splitlines():
        kind, *facts = line.split("\t")
        if kind == "dep":
            namespace, _, name = facts[0].rpartition("/")
            yield PackageURL("golang", namespace, name, facts[1])


def _go_string(program: bytes, start: int) -> tuple[bytes, int]:
    """A string after its length, seven bits of it in each byte; and where it ends."""
    length = shift = 0
    while True:
        byte = program[start]
        start += 1
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return program[start : start + length], start + length


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
