"""Jobs that cannot run on a machine, and what helps."""

import os
from fractions import Fraction
from pathlib import Path

import pytest

from mpi_operator.api.decode import decode_job
from mpi_operator.cli.command_errors import InvalidInput
from mpi_operator.cli.running import feasibility
from mpi_operator.local.kubelet.capacity import GPU, Machine
from tests.support.mpijobs import mpijob

MACHINE = Machine(Fraction(4), Fraction(8 * 2**30), lambda: ("0",))
WORKER_REQUESTS = "spec.mpiReplicaSpecs.Worker.template.spec.containers[0].resources.requests"


def role(volumes=(), **requests):
    container = {"name": "mpi", "image": "i", "resources": {"requests": requests}}
    return {"template": {"spec": {"containers": [container], "volumes": [*volumes]}}}


def job(launcher=None, worker=None, workers=2):
    manifest = mpijob("pi", launcher=launcher, worker={"replicas": workers, **(worker or {})})
    return decode_job(manifest)


def excess(found, *, oversubscribe=False):
    return [*feasibility.excess(found, MACHINE, oversubscribe=oversubscribe)]


def test_all_pods_of_a_job_run_together():
    [found] = excess(job(role(cpu="1"), role(cpu="2")))
    assert found.message == (
        "pi requests 5 CPUs (1 launcher with 1, 2 workers with 2), this machine has 4"
    )
    assert (found.options, found.workers) == (["--oversubscribe"], 1)


def test_memory_is_counted_too():
    [found] = excess(job(worker=role(memory="6Gi")))
    assert found.message == (
        "pi requests 12.0Gi memory (2 workers with 6.0Gi), this machine has 8.0Gi"
    )


def test_fewer_workers_are_not_proposed_if_none_fits():
    [found] = excess(job(role(cpu="4"), role(cpu="2")))
    assert (found.options, found.workers) == (["--oversubscribe"], 0)


@pytest.mark.parametrize(
    ("name", "message", "option"),
    [
        (GPU, "pi requests 2 GPUs (2 workers with 1), this machine has 1", "--gpus 0"),
        (
            "rdma/hca",
            "pi requests 2 rdma/hca (2 workers with 1), this machine has none",
            f"--set '{WORKER_REQUESTS}[rdma/hca]=0'",
        ),
    ],
)
def test_devices_cannot_be_oversubscribed(name, message, option):
    [found] = excess(job(worker=role(**{name: "1"})), oversubscribe=True)
    assert (found.message, found.options) == (message, [option])


def test_one_is_not_plural():
    bare = Machine(Fraction(1), Fraction(1))
    [found] = feasibility.excess(job(role(**{GPU: "1"})), bare, oversubscribe=True)
    assert found.message == "pi requests 1 GPU (1 launcher with 1), this machine has none"


def test_the_gpus_of_a_launcher_that_runs_no_ranks_are_set_by_their_path():
    [found] = excess(job(launcher=role(**{GPU: "2"})), oversubscribe=False)
    [option] = found.options
    assert option.startswith("--set 'spec.mpiReplicaSpecs.Launcher.template.spec.containers[0]")


def test_fewer_gpus_are_offered_if_there_are_some():
    wanted = job(worker={"replicas": 1, **role(**{GPU: "2"})})
    [found] = excess(wanted, oversubscribe=False)
    assert found.options == ["--gpus 1"]


def test_what_fits_or_may_be_oversubscribed_can_run():
    assert excess(job(role(cpu="1"), role(cpu="1500m", memory="1Gi"))) == []
    assert excess(job(worker=role(cpu="64", memory="1Ti")), oversubscribe=True) == []


def test_the_error_has_all_obstacles_and_the_options():
    volumes = [{"name": "n", "nfs": {"server": "s", "path": "/"}}]
    with pytest.raises(InvalidInput) as raised:
        feasibility.check([job(role(volumes, cpu="8"))], MACHINE, oversubscribe=False)
    assert str(raised.value) == (
        "the job cannot run on this machine:\n"
        "  pi requests 8 CPUs (1 launcher with 8), this machine has 4\n"
        "  pi: volume n: nfs is not available on this machine"
    )
    assert raised.value.command == "mpijob run … --oversubscribe --volume n=DIR  # helps"


def test_each_alternative_is_a_whole_command():
    volumes = [{"name": "n", "nfs": {"server": "s", "path": "/"}}]
    wanted = job(worker=role(volumes, cpu="2", memory="5Gi"), workers=4)
    with pytest.raises(InvalidInput) as raised:
        feasibility.check([wanted], MACHINE, oversubscribe=False)
    assert raised.value.command.splitlines() == [
        "mpijob run … --oversubscribe --volume n=DIR  # helps",
        "mpijob run … --set workers=1 --volume n=DIR  # helps, too",
    ]


# --- volumes


def unmountable(**source):
    found = feasibility.unmountable(job(role([{"name": "v", **source}])))
    return [each.message.partition(": volume v: ")[2] for each in found]


def host_path(path, kind=""):
    return unmountable(hostPath={"path": str(path), "type": kind})


def test_a_host_path_has_to_exist(tmp_path):
    (tmp_path / "file").touch()
    assert host_path(tmp_path) == host_path(tmp_path, "Directory") == []
    assert host_path(tmp_path / "file", "File") == []
    assert host_path(tmp_path / "no") == [f"{tmp_path}/no does not exist on this machine"]
    assert host_path(tmp_path / "file", "Directory") == [f"{tmp_path}/file is not a Directory"]
    assert host_path(tmp_path, "Socket") == [f"{tmp_path} is not a Socket"]


def test_a_host_path_may_be_created_where_we_may_write(tmp_path):
    assert host_path(tmp_path / "a" / "b", "DirectoryOrCreate") == []
    (tmp_path / "file").touch()
    below = tmp_path / "file" / "no"
    assert host_path(below, "DirectoryOrCreate") == [f"cannot create {below}"]
    assert not Path(tmp_path / "a").exists()


@pytest.mark.parametrize(
    "source",
    [
        {"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
        {"csi": {"driver": "d"}},
    ],
    ids=["token", "csi"],
)
def test_volumes_that_need_a_cluster(source):
    [why] = unmountable(**source)
    assert why.endswith(" is not available on this machine")


@pytest.mark.parametrize(
    "source",
    [
        {"emptyDir": {}},
        {"configMap": {"name": "c"}},
        {"persistentVolumeClaim": {"claimName": "c"}},
        {"projected": {"sources": [{"downwardAPI": {"items": []}}]}},
        {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        {"hostPath": {"path": os.sep}},
    ],
    ids=lambda source: next(iter(source)),
)
def test_volumes_that_this_machine_has(source):
    assert unmountable(**source) == []


def pair(policy):
    """Two jobs, each of which fits: a launcher with 1 CPU and two workers with 1 CPU."""
    launcher, worker = role(cpu="1"), {"replicas": 2, **role(cpu="1")}
    clean = {"cleanPodPolicy": policy}
    return [
        decode_job(mpijob(name, launcher=launcher, worker=worker, runPolicy=clean))
        for name in ("one", "two")
    ]


def test_jobs_that_do_not_fit_together_are_refused():
    with pytest.raises(InvalidInput) as raised:
        feasibility.check(pair("None"), MACHINE, oversubscribe=False)
    assert raised.value.message == (
        "the jobs of the file cannot run on this machine:\n"
        "  the jobs together request 6 CPUs (one with 3, two with 3), this machine has 4; they run"
        " at the same time, and workers keep what they request until all jobs have ended"
        " (cleanPodPolicy None)"
    )
    assert raised.value.command.splitlines() == [
        "mpijob run … --oversubscribe  # helps",
        "mpijob run … --set spec.runPolicy.cleanPodPolicy=Running  # helps, too",
    ]


@pytest.mark.parametrize(
    ("policy", "oversubscribe"),
    [
        pytest.param("None", True, id="with --oversubscribe"),
        pytest.param("Running", False, id="one after the other"),
    ],
)
def test_jobs_that_do_not_block_each_other_are_not_refused(policy, oversubscribe):
    feasibility.check(pair(policy), MACHINE, oversubscribe=oversubscribe)  # raises nothing
