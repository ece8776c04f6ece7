"""Which objects are meant: label selectors and field selectors, as Kubernetes writes them.

    team=red,stage!=test,owner in (a, b),tier notin (c),gpu,!spot        of labels
    metadata.name=pi,status.phase!=Failed                                of fields

Selecting looks at labels and at a few named fields; which ones a kind has is for its row to say.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

Values: TypeAlias = Mapping[str, str]
Requirement: TypeAlias = Callable[[Values], bool]


class SelectorError(ValueError):
    """A selector that cannot be read."""


class Selector(NamedTuple):
    """All of its requirements have to be met; without any, everything is chosen."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, values: Values) -> bool:
        return all(is_met(values) for is_met in self.requirements)


EVERYTHING = Selector()


def parse_labels(text: str) -> Selector:
    """A label selector; SelectorError where it is none."""
    if not text.strip():
        return EVERYTHING
    tokens = _Tokens(text)
    requirements = [_label_requirement(tokens)]
    while tokens.take(","):
        requirements.append(_label_requirement(tokens))
    tokens.expect_end()
    return Selector(tuple(requirements))


def parse_fields(text: str, known: frozenset[str]) -> Selector:
    """A field selector over the fields that a kind has; SelectorError where it is none."""
    parts = [part for part in text.split(",") if part]
    return Selector(tuple(_field_requirement(part, known) for part in parts))


def _field_requirement(part: str, known: frozenset[str]) -> Requirement:
    # The longest operator first, or "a==b" would be "a" equal to "=b".
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
    """A selector in pieces, read from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._rest = _TOKEN.findall(text)
        self._rest.reverse()

    def take(self, *wanted: str) -> str:
        """The next piece if it is one of these, else nothing."""
        return self._rest.pop() if self._rest and self._rest[-1] in wanted else ""

    def word(self) -> str:
        if not self._rest or self._rest[-1] in _SYMBOLS:
            raise self._wrong("identifier")
        return str(self._rest.pop())

    def optional_word(self) -> str:
        has_word = bool(self._rest) and self._rest[-1] not in _SYMBOLS
        return str(self._rest.pop()) if has_word else ""

    def expect(self, symbol: str) -> None:
        if not self.take(symbol):
            raise self._wrong(f"'{symbol}'")

    def expect_end(self) -> None:
        if self._rest:
            raise self._wrong("',' or 'end of string'")

    def _wrong(self, expected: str) -> SelectorError:
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
    """Whoever lacks the label is chosen too: so Kubernetes wants it."""
    return lambda labels: labels.get(name) not in values
