"""Paths of mounts, translated where there are no mounts."""

from pathlib import Path

import pytest

from mpi_operator.local.sandbox.path_translation import Translation
from mpi_operator.local.sandbox.protocol import Mount

TRANSLATION = Translation(
    [
        Mount(Path("/pods/1/conf"), "/etc/mpi"),
        Mount(Path("/pods/1/hosts"), "/etc/mpi/hostfile"),
        Mount(Path("/pods/1/data"), "/data"),
    ]
)


@pytest.mark.parametrize(
    ("text", "translated"),
    [
        ("/data", "/pods/1/data"),
        ("/data/a", "/pods/1/data/a"),
        ("--file=/data/a", "--file=/pods/1/data/a"),
        ("/data:/etc/mpi", "/pods/1/data:/pods/1/conf"),
        ("cat '/data/a' >/data/b", "cat '/pods/1/data/a' >/pods/1/data/b"),
        pytest.param("/etc/mpi/hostfile", "/pods/1/hosts", id="the longest mount wins"),
        pytest.param("/etc/mpi/discover", "/pods/1/conf/discover", id="beside it"),
        pytest.param("/database", "/database", id="another name that begins alike"),
        pytest.param("/data.old", "/data.old", id="a name with an end"),
        pytest.param("/opt/data", "/opt/data", id="the end of another path"),
        pytest.param("./data", "./data", id="a relative path"),
        pytest.param("http://host/data", "http://host/data", id="an address"),
    ],
)
def test_translation(text, translated):
    assert TRANSLATION(text) == translated


def test_without_mounts_nothing_changes():
    assert Translation([])("/data") == "/data"
