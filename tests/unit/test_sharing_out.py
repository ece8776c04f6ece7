"""Which tests stay together, and which come first."""

from pathlib import Path

import pytest

from tests.support import sharing_out

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        pytest.param("tests/unit/a.py::x", "tests/unit/a.py::y[z]", True, id="those of a file"),
        pytest.param("tests/unit/a.py::x", "tests/unit/b.py::x", False, id="not those of two"),
        pytest.param("tests/cluster/a.py::x", "tests/cluster/b/c.py::x", True, id="all with nodes"),
        pytest.param("tests/api/a/b.py::x", "tests/api/c.py::x", True, id="all with an API server"),
        pytest.param(
            "tests/api/operator/a.py::x", "tests/api/c.py::x", False, id="but for the operator's"
        ),
        pytest.param(
            "tests/cluster/a.py::x",
            "tests/cluster/test_owners.py::x",
            False,
            id="and for those with nodes of their own",
        ),
    ],
)
def test_what_stays_together(one, other, together):
    assert (sharing_out.unit(one) == sharing_out.unit(other)) is together


@pytest.mark.parametrize(
    ("alone", "order"),
    [
        pytest.param(True, ["unit", "long", "local", "api", "operator", "cluster"], id="alone"),
        pytest.param(
            False,
            ["cluster", "operator", "unit", "api", "long", "local"],
            id="of several processes",
        ),
    ],
)
def test_what_comes_first(alone, order):
    files = {
        "api": "tests/api/kube/test_http.py::x",
        "local": "tests/local/test_pods.py::x",
        "operator": "tests/api/operator/test_success.py::x",
        "cluster": "tests/cluster/test_pods.py::x",
        "long": f"{sharing_out.LONG[0]}::x",
        "unit": "tests/unit/test_examples.py::x",
    }
    assert sorted(files, key=lambda name: sharing_out.rank(files[name], alone=alone)) == order


@pytest.mark.parametrize("place", [*sharing_out.WHOLE, *sharing_out.LONG])
def test_what_is_named_is_there(place):
    assert (ROOT / place).exists()
