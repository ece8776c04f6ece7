"""`--volume`: directories of this machine in place of volumes."""

import pytest

from mpi_operator.cli.command_errors import InvalidInput
from mpi_operator.cli.job_input import volume_options
from tests.support.mpijobs import mpijob, template

VOLUMES = [
    {"name": "v", "persistentVolumeClaim": {"claimName": "data"}},
    {"name": "h", "hostPath": {"path": "/scratch/", "type": "Directory"}},
    {"name": "n", "nfs": {"server": "files", "path": "/"}},
]


def job():
    return mpijob(
        "pi",
        launcher={"template": template(volumes=VOLUMES)},
        worker={"replicas": 1, "template": template(volumes=VOLUMES[:1])},
    )


def volumes_of(manifest, role):
    return manifest["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]["volumes"]


@pytest.mark.parametrize(
    ("name", "index"),
    [("data", 0), ("v", 0), ("/scratch", 1), ("h", 1), ("n", 2)],
    ids=["claim", "volume of a claim", "host path", "volume of a host path", "volume"],
)
def test_a_directory_in_place_of_a_volume(tmp_path, name, index):
    given = volume_options.parsed([f"{name}={tmp_path}"])
    volume_options.check_used([job()], given)
    found = volumes_of(volume_options.mapped(job(), given), "Launcher")
    wanted = {"name": VOLUMES[index]["name"], "hostPath": {"path": str(tmp_path)}}
    assert found == [wanted if place == index else each for place, each in enumerate(VOLUMES)]


def test_all_pods_get_it_and_the_job_stays_as_it_was(tmp_path):
    before = job()
    changed = volume_options.mapped(before, {"data": tmp_path})
    assert volumes_of(changed, "Worker") == [{"name": "v", "hostPath": {"path": str(tmp_path)}}]
    assert before == job()


def test_a_directory_is_relative_to_the_shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d").mkdir()
    assert volume_options.parsed(["data=./d"]) == {"data": tmp_path / "d"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("data", "invalid --volume data: expected NAME=DIR"),
        ("data=", "invalid --volume data=: expected NAME=DIR"),
        ("=x", "invalid --volume =x: expected NAME=DIR"),
        ("data=/no/such", "invalid --volume data=/no/such: /no/such does not exist"),
    ],
)
def test_invalid_options(given, message):
    with pytest.raises(InvalidInput) as raised:
        volume_options.parsed([given])
    assert str(raised.value).startswith(message)


def test_an_unknown_name_is_refused_with_the_known_ones(tmp_path):
    with pytest.raises(InvalidInput) as raised:
        volume_options.check_used([job()], {"other": tmp_path})
    assert str(raised.value) == (
        "invalid --volume other: no such volume; the job has volumes: data, v, /scratch, h, n"
    )


def test_a_volume_of_a_job_that_has_none_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match=r"no such volume; the job has no volumes$"):
        volume_options.check_used([{"spec": {"mpiReplicaSpecs": {}}}], {"data": tmp_path})
