"""Kubeconfig files: read, merge, and pick one context.

The rules are kubectl's: of several files, the first to define a name or the current context wins,
and a definition is never mixed from two files. Every entry remembers its file, because relative
paths inside are relative to that file, and because an error should say where to look.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
import yaml

from mpi_operator.kube.errors import ConfigError

from .files import read_text
from .kubeconfig_types import Cluster, Context, Document, User

T = TypeVar("T")
N = TypeVar("N")


@dataclass(frozen=True)
class Entry(Generic[T]):
    """One cluster, user or context, and the file that defines it."""

    kind: str
    name: str
    value: T
    file: Path

    @property
    def where(self) -> str:
        return f'{self.file}: {self.kind} "{self.name}"'

    def path(self, text: str) -> Path:
        """A path in this entry, relative to the directory of the file (not of a link's target)."""
        return self.file.absolute().parent / text


@dataclass(frozen=True)
class Kubeconfig:
    """The content of one file, or of several merged ones."""

    files: tuple[Path, ...] = ()
    current_context: str | None = None
    clusters: Mapping[str, Entry[Cluster]] = field(default_factory=dict)
    users: Mapping[str, Entry[User]] = field(default_factory=dict)
    contexts: Mapping[str, Entry[Context]] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not (self.current_context or self.clusters or self.users or self.contexts)


@dataclass(frozen=True)
class Selection:
    """The cluster, the user and the context to use."""

    cluster: Entry[Cluster]
    user: Entry[User] | None
    context: Entry[Context] | None


def merged(parts: Iterable[Kubeconfig]) -> Kubeconfig:
    """Several files as one: the first definition wins."""
    result = Kubeconfig()
    for part in parts:
        result = Kubeconfig(
            files=result.files + part.files,
            current_context=result.current_context or part.current_context,
            clusters={**part.clusters, **result.clusters},
            users={**part.users, **result.users},
            contexts={**part.contexts, **result.contexts},
        )
    return result


def select(
    kubeconfig: Kubeconfig, *, context: str | None, cluster: str | None, user: str | None
) -> Selection:
    """The given or else the current context, with its cluster or user replaced if given."""
    chosen = _context(kubeconfig, context, needed=not cluster)
    values = chosen.value if chosen else Context()
    wanted = chosen.where if chosen else _files(kubeconfig)
    cluster, user = cluster or values.cluster, user or values.user
    if not cluster:
        raise ConfigError(f"{wanted}: no cluster; expected one of: {_names(kubeconfig.clusters)}")
    return Selection(
        cluster=_found(kubeconfig.clusters, "cluster", cluster, wanted),
        # No user is valid too: `kubectl proxy` needs none.
        user=_found(kubeconfig.users, "user", user, wanted) if user else None,
        context=chosen,
    )


def read_kubeconfig(path: Path) -> Kubeconfig:
    """One file."""
    document = _document(path)
    return Kubeconfig(
        files=(path,),
        current_context=document.current_context or None,
        clusters=_by_name(
            "cluster", path, document.clusters, lambda e: (e.name, e.cluster or Cluster())
        ),
        users=_by_name("user", path, document.users, lambda e: (e.name, e.user or User())),
        contexts=_by_name(
            "context", path, document.contexts, lambda e: (e.name, e.context or Context())
        ),
    )


class _Loader(yaml.SafeLoader):
    """YAML in which 2026-01-31 is text, as for kubectl: a name or a token may look like that."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


# msgspec prepares a type when it is first used, and crashes if two threads do that at once (0.22).
msgspec.json.Decoder(Document)


def _document(path: Path) -> Document:
    parsed = _yaml(read_text(path, "kubeconfig"), path)
    try:
        document = msgspec.convert({} if parsed is None else parsed, Document)
    except msgspec.ValidationError as error:
        # "Expected `str`, got `int` - at `$.clusters[0].cluster.server`": types, never values.
        raise ConfigError(f"{path}: not a kubeconfig: {error}") from None
    except RecursionError:
        raise ConfigError(f"{path}: not a kubeconfig: nested too deeply") from None
    if document.kind not in (None, "", "Config") or document.api_version not in (None, "", "v1"):
        raise ConfigError(
            f"{path}: expected apiVersion v1 and kind Config, "
            f"got {document.api_version} and {document.kind}; this may be another kind of file"
        )
    return document


def _yaml(text: str, path: Path) -> object:
    """The first document. Errors give a position only: the parser's text may quote a secret."""
    try:
        return next(yaml.load_all(text, _Loader), None)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ConfigError(f"{path}: not valid YAML{place}") from None
    except Exception:
        # Odd tags (`!!bool maybe`), huge numbers, deep nesting: PyYAML raises anything from
        # KeyError to RecursionError. It all means that the file is not valid.
        raise ConfigError(f"{path}: not valid YAML") from None


def _by_name(
    kind: str, path: Path, named: list[N] | None, split: Callable[[N], tuple[str | None, T]]
) -> dict[str, Entry[T]]:
    entries: dict[str, Entry[T]] = {}
    for name, value in map(split, named or ()):
        entry = Entry(kind, name or "", value, path)
        if entries.setdefault(entry.name, entry) is not entry:
            raise ConfigError(f"{entry.where}: defined twice; remove one definition")
    return entries


def _context(kubeconfig: Kubeconfig, name: str | None, *, needed: bool) -> Entry[Context] | None:
    if chosen := name or kubeconfig.current_context:
        return _found(kubeconfig.contexts, "context", chosen, _files(kubeconfig))
    if needed:
        raise ConfigError(
            f"{_files(kubeconfig)}: no current-context; set it with `kubectl config use-context`, "
            f"or name one of: {_names(kubeconfig.contexts)}"
        )
    return None


def _found(entries: Mapping[str, Entry[T]], kind: str, name: str, wanted: str) -> Entry[T]:
    if name not in entries:
        raise ConfigError(f'{wanted}: {kind} "{name}" not found; there are: {_names(entries)}')
    return entries[name]


def _names(entries: Iterable[str]) -> str:
    return ", ".join(sorted(entries)) or "none"


def _files(kubeconfig: Kubeconfig) -> str:
    return ", ".join(map(str, kubeconfig.files)) or "kubeconfig"
