"""MLRun finds the pods of its jobs, and sees how they are and how they end."""

from datetime import datetime

from devcluster.cluster import Cluster
from mpi_operator.kube.client import Selector
from mpi_operator.kube.resources import PODS, Manifest
from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import OPEN_MPI
from tests.cluster.operator.test_versions import V1
from tests.peers.readers import mlrun


async def test_a_run_is_active_then_completed(lab: Lab, cluster: Cluster) -> None:
    mpirun = OPEN_MPI.command("sh")
    script = "echo a rank; until test -e /tmp/go; do sleep 0.2; done"
    await _submit(lab, mlrun.job("run", [*mpirun, "-c", script], OPEN_MPI.image))
    await lab.runs("run")
    await lab.prints("run", "a rank")

    read = await _read(lab, "run")
    assert mlrun.launcher_state(read) == "active"
    assert mlrun.run_state(read) == ("running", None)
    [launcher] = await _pods(lab, mlrun.pod_selector("run", launcher=True))
    assert await _pods(lab, mlrun.log_selector("run")) == [launcher]
    workers = ["run-worker-0", "run-worker-1"]
    assert await _pods(lab, mlrun.pod_selector("run")) == sorted([launcher, *workers])

    for worker in workers:
        cluster.kubectl("exec", "-n", lab.namespace, worker, "--", "touch", "/tmp/go")
    await lab.succeeds("run")

    read = await _read(lab, "run")
    state, ended = mlrun.run_state(read)
    assert state == "completed"
    assert ended is not None
    assert ended >= datetime.fromisoformat(read["status"]["startTime"])
    assert mlrun.launcher_state(read) == "succeeded"


async def test_a_run_that_fails_is_an_error(lab: Lab) -> None:
    await _submit(lab, mlrun.job("run", ["sh", "-c", "exit 3"], OPEN_MPI.image))

    await lab.fails("run")

    read = await _read(lab, "run")
    assert mlrun.run_state(read)[0] == "error"
    assert mlrun.launcher_state(read) == "failed"


async def _submit(lab: Lab, job: Manifest) -> None:
    job["metadata"]["namespace"] = lab.namespace
    await lab.client.create(V1, job)


async def _read(lab: Lab, name: str) -> Manifest:
    return await lab.client.get(V1, name, lab.namespace)


async def _pods(lab: Lab, selector: str) -> list[str]:
    found = await lab.client.list(PODS, lab.namespace, Selector(labels=selector))
    return sorted(pod["metadata"]["name"] for pod in found.items)
