"""Label and field selectors in the syntax of Kubernetes.

    team=red,stage!=test,owner in (a, b),tier notin (c),gpu,!spot        labels
    metadata.name=pi,status.phase!=Failed                                fields

Each kind defines the fields that it can be selected by (`served_kinds.Kind.selectable`).
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from mpi_operator.kube import client

from . import api_errors
from .served_kinds import Kind
from .stored_object import StoredObject

Values: TypeAlias = Mapping[str, str]
Requirement: TypeAlias = Callable[[Values], bool]


class SelectorError(ValueError):
    """A selector with a syntax error or an unknown field."""


class Selector(NamedTuple):
    """Matches what meets all of its requirements."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, values: Values) -> bool:
        return all(is_met(values) for is_met in self.requirements)


EVERYTHING = Selector()


class Selection(NamedTuple):
    """The objects of a request: of one namespace or of all, and matching both selectors."""

    namespace: str = ""
    labels: Selector = EVERYTHING
    fields: Selector = EVERYTHING

    def matches(self, stored: StoredObject | None) -> bool:
        return (
            stored is not None
            and self.namespace in ("", stored.key.namespace)
            and self.labels.matches(stored.labels)
            and self.fields.matches(stored.fields)
        )


def parse_selection(kind: Kind, namespace: str, selector: client.Selector) -> Selection:
    """The selection of a request; BadRequest if a selector is invalid."""
    try:
        return Selection(
            namespace if kind.resource.namespaced else "",
            parse_labels(selector.labels),
            parse_fields(selector.fields, kind.fields),
        )
    except SelectorError as error:
        raise api_errors.bad_request(str(error)) from error


def parse_labels(text: str) -> Selector:
    """Parse a label selector."""
    if not text.strip():
        return EVERYTHING
    tokens = _Tokens(text)
    requirements = [_label_requirement(tokens)]
    while tokens.take(","):
        requirements.append(_label_requirement(tokens))
    tokens.expect_end()
    return Selector(tuple(requirements))


def parse_fields(text: str, known: frozenset[str]) -> Selector:
    """Parse a field selector over the fields that a kind can be selected by."""
    parts = [part for part in text.split(",") if part]
    return Selector(tuple(_field_requirement(part, known) for part in parts))


def _field_requirement(part: str, known: frozenset[str]) -> Requirement:
    # The longest operator first: "a==b" must not be read as "a" equal to "=b".
    found = re.fullmatch(r"([^=!]*)(==|!=|=)(.*)", part)
    if found is None:
        raise SelectorError(f"invalid selector: '{part}'; can't understand '{part}'")
    name, operator, value = (text.strip() for text in found.groups())
    if name not in known:
        raise SelectorError(f"field label not supported: {name}")
    wants_equal = operator != "!="
    return lambda values: (values.get(name, "") == value) is wants_equal


_TOKEN = re.compile(r"\s*(==|!=|[=!,()]|[^\s=!,()]+)")
_SYMBOLS = frozenset(("==", "!=", "=", "!", ",", "(", ")"))


class _Tokens:
    """The tokens of a selector, read from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._rest = _TOKEN.findall(text)
        self._rest.reverse()

    def take(self, *wanted: str) -> str:
        """The next token if it is one of these, else an empty string."""
        return self._rest.pop() if self._rest and self._rest[-1] in wanted else ""

    def word(self) -> str:
        if not self._rest or self._rest[-1] in _SYMBOLS:
            raise self._unexpected("identifier")
        return str(self._rest.pop())

    def optional_word(self) -> str:
        has_word = bool(self._rest) and self._rest[-1] not in _SYMBOLS
        return str(self._rest.pop()) if has_word else ""

    def expect(self, symbol: str) -> None:
        if not self.take(symbol):
            raise self._unexpected(f"'{symbol}'")

    def expect_end(self) -> None:
        if self._rest:
            raise self._unexpected("',' or 'end of string'")

    def _unexpected(self, expected: str) -> SelectorError:
        found = self._rest[-1] if self._rest else ""
        return SelectorError(
            f"unable to parse requirement: found '{found}', expected: {expected} in '{self._text}'"
        )


def _label_requirement(tokens: _Tokens) -> Requirement:
    if tokens.take("!"):
        absent = tokens.word()
        return lambda labels: absent not in labels
    name = tokens.word()
    if tokens.take("=", "=="):
        return _one_of(name, frozenset((tokens.optional_word(),)))
    if tokens.take("!="):
        return _none_of(name, frozenset((tokens.optional_word(),)))
    if tokens.take("in"):
        return _one_of(name, frozenset(_listed(tokens)))
    if tokens.take("notin"):
        return _none_of(name, frozenset(_listed(tokens)))
    return lambda labels: name in labels


def _listed(tokens: _Tokens) -> Iterator[str]:
    tokens.expect("(")
    yield tokens.optional_word()
    while tokens.take(","):
        yield tokens.optional_word()
    tokens.expect(")")


def _one_of(name: str, values: frozenset[str]) -> Requirement:
    return lambda labels: labels.get(name) in values


def _none_of(name: str, values: frozenset[str]) -> Requirement:
    """As on Kubernetes this also matches objects without the label."""
    return lambda labels: labels.get(name) not in values
