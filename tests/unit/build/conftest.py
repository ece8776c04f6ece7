"""Golden files: whole objects as YAML, to be read in review.

`pytest tests/unit/build --update-golden` writes them anew.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from mpi_operator.kube.resources import Manifest

_DIRECTORY = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", default=False, help="write the golden files anew"
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, Manifest], None]:
    """Compare an object with the file of that name."""
    is_update = request.config.getoption("--update-golden", default=False)

    def compare(name: str, manifest: Manifest) -> None:
        file = _DIRECTORY / f"{name}.yaml"
        text = _yaml(manifest)
        if is_update:
            file.write_text(text)
        assert text == file.read_text()

    return compare


class _Dumper(yaml.SafeDumper):
    """Without anchors, and with multi-line strings as blocks."""

    def ignore_aliases(self, data: object) -> bool:
        return True

    def represent_text(self, text: str) -> yaml.ScalarNode:
        style = "|" if "\n" in text else None
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _Dumper.represent_text)


def _yaml(manifest: Manifest) -> str:
    return yaml.dump(manifest, Dumper=_Dumper, sort_keys=False, width=100)
