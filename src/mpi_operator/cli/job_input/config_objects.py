"""ConfigMaps and Secrets: from documents, and from files named on the command line."""

import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mpi_operator.cli.command_errors import InvalidInput
from mpi_operator.cli.plain_text import printable
from mpi_operator.kube.resources import CONFIG_MAPS, SECRETS, Manifest, Resource

NAMESPACE = "default"  # of everything that runs on this machine

# Fields with base64 and fields with plain text.
_ENCODED = {CONFIG_MAPS.kind: "binaryData", SECRETS.kind: "data"}
_PLAIN = {CONFIG_MAPS.kind: "data", SECRETS.kind: "stringData"}
_NAME = r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?"
# A volume has a file for each key, and names of its own that start with "..".
_KEY = r"(?!\.\.|\.\Z)[-._a-zA-Z0-9]{1,253}"
_KEY_RULE = "allowed are letters, digits, '-', '_' and '.', but not '.' alone or '..' in front"


def checked(manifest: Manifest, source: str) -> Manifest:
    """A document as the API server would store it; InvalidInput if it would refuse it."""
    metadata = manifest.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    kind = manifest["kind"]
    if not isinstance(name, str) or not re.fullmatch(_NAME, name):
        raise InvalidInput(f"{kind} in {source}: metadata.name must be a lower-case DNS name")
    for problem in _problems(manifest) if kind in _PLAIN else ():
        raise InvalidInput(f"{kind} {name} in {source}: {printable(problem)}")
    return {**manifest, "metadata": {**(metadata or {}), "namespace": NAMESPACE}}


def keys_of(manifest: Manifest) -> set[str]:
    """The keys of a ConfigMap or Secret."""
    kind = manifest["kind"]
    return {*(manifest.get(_PLAIN[kind]) or ()), *(manifest.get(_ENCODED[kind]) or ())}


class CommandLineObject(NamedTuple):
    """An object of the command line."""

    manifest: Manifest
    is_whole: bool = True
    """False if only single keys were given, which are added to the object of the file."""


def from_files(resource: Resource, option: str, given: Iterable[str]) -> list[CommandLineObject]:
    """The objects of `--configmap` and `--secret-file`, each given as NAME[:KEY]=PATH."""
    contents: dict[str, dict[str, bytes]] = {}
    whole: set[str] = set()
    for text in given:
        target, separator, path = text.partition("=")
        name, _, key = target.partition(":")
        if not separator or not path or not re.fullmatch(_NAME, name):
            raise InvalidInput(f"invalid {option} {text}: expected NAME=PATH, such as config=./dir")
        contents.setdefault(name, {}).update(_read(Path(path), key, f"{option} {text}"))
        if not key:
            whole.add(name)
    return [
        CommandLineObject(_manifest(resource, name, held), name in whole)
        for name, held in contents.items()
    ]


def merged(documents: Sequence[Manifest], given: Sequence[CommandLineObject]) -> list[Manifest]:
    """The objects of the file; those of the command line replace them, or keys of them."""
    by_name = {_identity(each): each for each in documents}
    for manifest, is_whole in given:
        before = None if is_whole else by_name.get(_identity(manifest))
        by_name[_identity(manifest)] = _with_keys(before, manifest) if before else manifest
    return [*by_name.values()]


def _identity(manifest: Manifest) -> tuple[str, str]:
    return manifest["kind"], manifest["metadata"]["name"]


def _with_keys(manifest: Manifest, given: Manifest) -> Manifest:
    """An object with the keys of another one, which may be in another field than before."""
    replaced = keys_of(given)
    data = {}
    for field in (_PLAIN[manifest["kind"]], _ENCODED[manifest["kind"]]):
        held = manifest.get(field) or {}
        kept = {key: value for key, value in held.items() if key not in replaced}
        data[field] = {**kept, **(given.get(field) or {})}
    return {**manifest, **data}


def _problems(manifest: Manifest) -> Iterator[str]:
    """What is wrong with the data. Never a value: it may be secret."""
    kind = manifest["kind"]
    for field in (_PLAIN[kind], _ENCODED[kind]):
        data = manifest.get(field) or {}
        if not isinstance(data, Mapping):
            yield f"{field} must be an object"
            return
        for key, value in data.items():
            if not isinstance(key, str) or not re.fullmatch(_KEY, key):
                yield f"{field}: invalid key {key!r}; {_KEY_RULE}"
            elif not isinstance(value, str | None):
                yield f"{field}.{key} must be a string: put quotes around the value"
            elif field == _ENCODED[kind] and not _is_base64(value or ""):
                yield f"{field}.{key} must be base64" + _plain_hint(kind)


def _plain_hint(kind: str) -> str:
    return "; use stringData for plain text" if kind == SECRETS.kind else ""


def _is_base64(text: str) -> bool:
    try:
        b64decode("".join(text.split()), validate=True)
    except ValueError:  # also for text that is not ASCII
        return False
    return True


def _read(path: Path, key: str, option: str) -> dict[str, bytes]:
    try:
        if path.is_dir() and not key:
            return {_checked_key(each.name, option): each.read_bytes() for each in _files(path)}
        return {_checked_key(key or path.name, option): path.read_bytes()}
    except OSError as error:
        raise InvalidInput(f"invalid {option}: cannot read {path}: {error.strerror}") from error


def _files(directory: Path) -> list[Path]:
    return sorted(entry for entry in directory.iterdir() if entry.is_file())


def _checked_key(key: str, option: str) -> str:
    if not re.fullmatch(_KEY, key):
        raise InvalidInput(
            f"invalid {option}: {printable(key)} cannot be a key; give one as NAME:KEY=PATH"
        )
    return key


def _manifest(resource: Resource, name: str, held: Mapping[str, bytes]) -> Manifest:
    data: dict[str, Any] = {}
    for key, content in held.items():
        field, value = _field(resource, content)
        data.setdefault(field, {})[key] = value
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        **data,
    }


def _field(resource: Resource, content: bytes) -> tuple[str, str]:
    """The field for a content, and the content as that field has it."""
    if resource == CONFIG_MAPS:
        try:
            return _PLAIN[resource.kind], content.decode()
        except UnicodeDecodeError:
            pass
    return _ENCODED[resource.kind], b64encode(content).decode()
