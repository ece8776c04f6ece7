"""The table of upstream's test cases names tests that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "docs" / "reference" / "upstream-tests.md"


def named_tests() -> list[tuple[str, str]]:
    """Every file that the table names, with the test in it, if one is named."""
    found, section, last = [], "", ""
    for line in TABLE.read_text().splitlines():
        if line.startswith("`…` is `"):
            section = line.split("`")[3]
        for name in re.findall(r"`([^`]*(?:\.py|::)[^`]*)`", line):
            file, _, test = name.partition("::")
            last = file.replace("…", section) or last
            found.append((last, test))
    return found


@pytest.mark.parametrize(("file", "test"), sorted(set(named_tests())))
def test_it_is_there(file, test):
    text = (ROOT / "tests" / file).read_text()
    assert f"def {test}(" in text or not test
