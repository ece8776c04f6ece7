"""Manifests as text: YAML that Kubernetes reads as it was meant, or JSON."""

import json
import re
from collections.abc import Sequence
from typing import Any

import yaml

from mpi_operator.cli.command_errors import InvalidInput

from .manifest_files import Document

# Strings that Go reads as numbers or booleans, though PyYAML does not: 1e-3, 08, y.
_AMBIGUOUS = re.compile(
    r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?0[box][0-9a-fA-F_]+|[yYnN]"
)
_OTHER_BREAKS = re.compile("[\r\x85\u2028\u2029]")
_STRING = "tag:yaml.org,2002:str"


def as_json(value: Any) -> str:
    try:
        return json.dumps(value, indent=2) + "\n"
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"cannot write JSON: {error}") from error


def as_yaml(value: Any) -> str:
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True)


def joined(documents: Sequence[Document], output: str) -> str:
    """Several documents as one text; YAML keeps the text of those that have one."""
    if output == "json":
        values = [each.value for each in documents]
        several = {"apiVersion": "v1", "kind": "List", "items": values}
        return as_json(values[0] if len(values) == 1 else several)
    return "".join(map(_part, range(len(documents)), documents))


def _part(index: int, document: Document) -> str:
    text = document.text.strip("\n") + "\n" if document.text else as_yaml(document.value)
    has_separator = index == 0 or text.startswith("---")
    return text if has_separator else f"---\n{text}"


class _Dumper(yaml.SafeDumper):
    """Without anchors, and with several lines of text as a block."""

    def ignore_aliases(self, data: object) -> bool:
        return True

    def represent_text(self, text: str) -> yaml.ScalarNode:
        is_quoted = _AMBIGUOUS.fullmatch(text) or _OTHER_BREAKS.search(text)
        style = '"' if is_quoted else "|" if "\n" in text else None
        return self.represent_scalar(_STRING, text, style=style)


_Dumper.add_representer(str, _Dumper.represent_text)
