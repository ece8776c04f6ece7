"""Golden files: whole objects as YAML, to be read in review."""

from pathlib import Path
from typing import Any

import yaml


def compare(file: Path, manifest: dict[str, Any], *, is_update: bool) -> None:
    """Compare an object with a file, or write the file anew."""
    text = yaml.dump(manifest, Dumper=_Dumper, sort_keys=False, width=100)
    if is_update:
        file.write_text(text)
    assert text == file.read_text()


class _Dumper(yaml.SafeDumper):
    """Without anchors, and with multi-line strings as blocks."""

    def ignore_aliases(self, data: object) -> bool:
        return True

    def represent_text(self, text: str) -> yaml.ScalarNode:
        style = "|" if "\n" in text else None
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _Dumper.represent_text)
