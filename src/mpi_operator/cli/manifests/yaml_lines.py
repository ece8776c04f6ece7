"""Where the fields of a document are in its file, and which of them are written twice."""

from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

import yaml

from .manifest_files import Document

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Duplicate(NamedTuple):
    """A key that its mapping has already."""

    path: str
    line: int


class Lines:
    """The lines of a document; JSON that is not YAML has none."""

    def __init__(self, document: Document) -> None:
        self._before = document.lines_before
        try:
            self._root = yaml.compose(document.text, _LOADER)
        except (yaml.YAMLError, RecursionError):
            self._root = None

    def of(self, keys: Sequence[Hashable]) -> int | None:
        """The line of a field, or of the last of its parents that is there."""
        if self._root is None:
            return None
        node, line = self._root, self._line(self._root)
        for key in keys:
            found = _child(node, key)
            if found is None:
                break
            place, node = found
            line = self._line(place)
        return line

    def duplicates(self) -> Iterator[Duplicate]:
        """The keys that are written twice, of which Kubernetes would refuse the second."""
        if self._root is not None:
            yield from self._duplicates(self._root, "", set())

    def _duplicates(self, node: yaml.Node, path: str, seen: set[int]) -> Iterator[Duplicate]:
        if id(node) in seen:
            return  # an alias
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                yield from self._duplicates(item, f"{path}[{index}]", seen)
        if isinstance(node, yaml.MappingNode):
            known = set()
            for key, value in node.value:
                inner = f"{path}.{key.value}" if path else str(key.value)
                if isinstance(key, yaml.ScalarNode) and key.value in known:
                    yield Duplicate(inner, self._line(key))
                known.add(str(key.value))
                yield from self._duplicates(value, inner, seen)

    def _line(self, node: yaml.Node) -> int:
        return self._before + int(node.start_mark.line) + 1


def _child(node: yaml.Node, key: Hashable) -> tuple[yaml.Node, yaml.Node] | None:
    """Where a field or an item is written, and its value."""
    if isinstance(node, yaml.MappingNode):
        return next(((name, value) for name, value in node.value if name.value == key), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
        return node.value[key], node.value[key]
    return None
