"""Exit codes of the operator, and what it logs last."""

import socket
from pathlib import Path

import pytest

from devcluster.control_plane import ControlPlane
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import LEASES
from tests.support import mpijobs
from tests.support.jobs import Jobs
from tests.support.operator import Operator, account, started


def _flags(jobs: Jobs) -> tuple[str, str]:
    return f"--namespace={jobs.namespace}", f"--lock-namespace={jobs.namespace}"


async def test_without_the_kind_it_says_how_to_install_it(
    spare_jobs: Jobs, spare_control_plane: ControlPlane, tmp_path: Path
) -> None:
    client = spare_jobs.client
    await mpijobs.uninstall(client)
    kubeconfig = await account(
        client,
        spare_control_plane.kubeconfig(),
        spare_jobs.namespace,
        tmp_path,
        "namespaced.yaml",
    )
    process = Operator(kubeconfig, tmp_path / "operator.log", *_flags(spare_jobs))
    async with started(process):
        assert await process.ended() == 3
    record = process.records()[-1]
    assert record["exit_code"] == 3
    crd = "kubectl apply -f deploy/crd/mpijobs.kubeflow.org.yaml"
    assert record["advice"] == {"MPIJob": crd}


async def test_without_permissions_it_names_every_one_that_is_missing(
    jobs: Jobs, control_plane: ControlPlane, tmp_path: Path
) -> None:
    admin = control_plane.kubeconfig()
    kubeconfig = await account(jobs.client, admin, jobs.namespace, tmp_path)
    process = Operator(kubeconfig, tmp_path / "operator.log", *_flags(jobs))
    async with started(process):
        assert await process.ended() == 4
    record = process.records()[-1]
    assert record["exit_code"] == 4
    user = f"system:serviceaccount:{jobs.namespace}:mpi-operator"
    for resource in ("mpijobs", "pods", "jobs", "services", "configmaps"):
        [refusal] = [each for each in record["errors"] if f'resource "{resource}"' in each]
        assert f'User "{user}" cannot list resource' in refusal
    assert not any('"secrets"' in each for each in record["errors"])


async def test_without_permission_for_groups_it_says_so_only_where_it_needs_them(
    jobs: Jobs, control_plane: ControlPlane, tmp_path: Path
) -> None:
    admin = control_plane.kubeconfig()
    kubeconfig = await account(jobs.client, admin, jobs.namespace, tmp_path, "namespaced.yaml")
    flags = (*_flags(jobs), "--gang-scheduling=volcano")
    process = Operator(kubeconfig, tmp_path / "operator.log", *flags)
    async with started(process):
        assert await process.ended() == 4
    refusals = process.records()[-1]["errors"]
    assert [each.partition(" is forbidden")[0] for each in refusals] == [
        "podgroups.scheduling.volcano.sh",
        "priorityclasses.scheduling.k8s.io",
    ]


@pytest.mark.parametrize(
    ("flag", "code"),
    [
        pytest.param("--no-such-flag", 2, id="a flag that is none"),
        pytest.param("--cluster-domain=.Bad", 2, id="a flag that makes no sense"),
        pytest.param("--kubeconfig=/no/such/file", 6, id="no kubeconfig"),
    ],
)
async def test_mistakes_in_flags(
    flag: str, code: int, control_plane: ControlPlane, tmp_path: Path
) -> None:
    process = Operator(control_plane.kubeconfig(), tmp_path / "operator.log", flag)
    async with started(process):
        assert await process.ended() == code


async def test_a_port_that_is_taken_is_named(control_plane: ControlPlane, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = taken.getsockname()[1]
        flag = f"--monitoring-port={port}"
        process = Operator(control_plane.kubeconfig(), tmp_path / "operator.log", flag)
        async with started(process):
            assert await process.ended() == 7
    assert process.records()[-1]["port"] == port


async def test_asked_to_stop_it_ends_well(
    jobs: Jobs, running_operator: Operator, client: HttpClient
) -> None:
    assert await running_operator.stop() == 0
    lease = await client.get(LEASES, "mpi-operator", jobs.namespace)
    assert not lease["spec"].get("holderIdentity")
