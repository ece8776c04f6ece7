"""A big job costs as many writes as it has objects, and a handful."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from devcluster.audit import counted
from mpi_operator.kube.resources import CONFIG_MAPS, JOBS, PODS, SECRETS, SERVICES
from tests.api.conftest import StartControlPlane
from tests.support.api_proxy import Forward, api_proxy
from tests.support.audited import AuditLog, new_namespace, service_account
from tests.support.jobs import Jobs
from tests.support.mirror import Mirror, mirrored
from tests.support.mpijobs import MPIJOBS, mpijob
from tests.support.operator import Operator, account, started
from tests.support.waiting import until

_HOME = "scale"
_WORKERS = 200
_HANDFUL = 12


@dataclass
class Versions:
    """Finds writes that change nothing: the server answers them with a version of before."""

    mirror: Mirror
    idle: list[str] = field(default_factory=list)

    async def write(self, request: web.Request, forward: Forward) -> web.StreamResponse:
        before = self.mirror.latest_version
        answer = await forward()
        assert isinstance(answer, web.Response)
        assert isinstance(answer.body, bytes)
        if request.method in ("PUT", "PATCH") and answer.status < 300:
            version = msgspec.json.decode(answer.body)["metadata"]["resourceVersion"]
            if int(version) <= before:
                self.idle.append(f"{request.method} {request.path}")
        return answer


@pytest.mark.timeout(240)
async def test_a_job_of_200_workers_takes_as_many_writes_as_it_has_objects_and_a_handful(
    start_control_plane: StartControlPlane, tmp_path: Path
) -> None:
    control_plane = start_control_plane(controller_manager=True, audit=True)
    async with (
        new_namespace(control_plane, _HOME) as jobs,
        mirrored(jobs.client, MPIJOBS, PODS, JOBS, CONFIG_MAPS) as mirror,
    ):
        versions = Versions(mirror)
        async with api_proxy(control_plane, tmp_path, versions) as admin:
            kubeconfig = await account(jobs.client, admin, _HOME, tmp_path, "namespaced.yaml")
            flags = (f"--namespace={_HOME}", f"--lock-namespace={_HOME}")
            process = Operator(kubeconfig, tmp_path / "operator.log", *flags)
            log = AuditLog(control_plane, jobs.client)
            async with started(process):
                await process.leading()
                await _live(jobs)
                await process.stop()
        writes = counted(await log.writes(service_account(_HOME)))
    print(writes)
    assert versions.idle == []
    cleaned_up = writes.pop("delete pods")
    objects = {
        "create services": 1,
        "create configmaps": 1,
        "create secrets": 1,
        "create jobs": 1,
        "create pods": _WORKERS,
    }
    assert {name: writes.pop(name) for name in objects} == objects
    assert sum(writes.values()) <= _HANDFUL, writes
    assert cleaned_up == _WORKERS


async def _live(jobs: Jobs) -> None:
    policy = {"cleanPodPolicy": "Running"}
    await jobs.submit(mpijob("big", worker={"replicas": _WORKERS}, runPolicy=policy))
    await until(lambda: jobs.has_workers("big", _WORKERS), 60)
    for resource, name in ((SERVICES, "big"), (CONFIG_MAPS, "big-config"), (SECRETS, "big-ssh")):
        await jobs.client.get(resource, name, _HOME)
    await until(lambda: _has_launcher(jobs))
    pods = await jobs.pod_names("big")
    assert len(pods) == _WORKERS + 1
    await asyncio.gather(*(jobs.run(pod) for pod in pods))
    await jobs.becomes("big", "Running")
    await until(lambda: _are_all_listed(jobs))
    [launcher] = await jobs.pod_names("big", "launcher")
    await jobs.succeed(launcher)
    await jobs.becomes("big", "Succeeded")
    await until(lambda: jobs.has_workers("big", 0))


async def _has_launcher(jobs: Jobs) -> bool:
    return bool(await jobs.pods("big", "launcher"))


async def _are_all_listed(jobs: Jobs) -> bool:
    return len(await jobs.hosts("big")) == _WORKERS
