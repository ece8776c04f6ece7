"""Manifests as text for `kubectl apply -f`, with the reason for each permission."""

import re
from collections.abc import Iterable

import yaml

from . import rbac
from .installation import Manifest


def yaml_text(objects: Iterable[Manifest], purpose: str) -> str:
    """A file that says what it is for, and why each rule is needed."""
    header = f"# Made by `make generate`. Do not edit.\n# {purpose}\n"
    return header + "---\n".join(with_reasons(dumped(each)) for each in objects)


def dumped(content: Manifest | list[Manifest]) -> str:
    """YAML without a header."""
    return yaml.dump(content, Dumper=_NoAliases, sort_keys=False, width=120)


def with_reasons(text: str) -> str:
    """The YAML with a comment above each rule."""
    for rule in rbac.RULES:
        block = dumped([rule.manifest])
        whole = re.escape(block) + "(?!  - )"  # and not the beginning of a rule with more verbs
        text = re.sub(f"(?={whole})", f"# {rule.why}\n", text)
    return text


class _NoAliases(yaml.SafeDumper):
    """Repeats equal parts, because YAML aliases surprise people."""

    def ignore_aliases(self, data: object) -> bool:
        return True
