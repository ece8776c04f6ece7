"""Golden files: whole objects as YAML, to be read in review.

`pytest tests/unit/build --update-golden` writes them anew.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from mpi_operator.kube.resources import Manifest
from tests.support.golden import compare

_DIRECTORY = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", default=False, help="write the golden files anew"
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, Manifest], None]:
    """Compare an object with the file of that name."""
    is_update = request.config.getoption("--update-golden", default=False)
    return lambda name, manifest: compare(
        _DIRECTORY / f"{name}.yaml", manifest, is_update=is_update
    )
