"""Kubeflow's `TrainingClient` creates, follows and deletes jobs that the operator runs."""

import asyncio
import os
import re
from pathlib import Path

import pytest
import yaml

from devcluster.cluster import Cluster
from mpi_operator.kube.resources import Manifest
from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import OPEN_MPI
from tests.cluster.operator.test_versions import V1, pi_in
from tests.peers.training_client.conftest import ClientError, RemoteClient
from tests.support.mpijobs import changed

HOW_TO = Path(__file__).parents[3] / "docs/how-to/use-training-client.md"
COMMAND = "spec.mpiReplicaSpecs.Launcher.template.spec.containers.0.command"
WAIT = {"polling_interval": 1, "wait_timeout": 120}
UNTIL_RUNNING = {**WAIT, "expected_conditions": ["Running"]}
UNTIL_TOLD = "until test -e /tmp/go; do sleep 0.2; done; exec " + " ".join(OPEN_MPI.command())


def job_of(lab: Lab, script: str) -> Manifest:
    """A job whose launcher is a shell script."""
    return changed(pi_in(V1, "pi", lab.namespace), COMMAND, ["sh", "-c", script])


async def test_a_job_is_created_followed_and_deleted(
    lab: Lab, cluster: Cluster, training: RemoteClient
) -> None:
    await training.call("create_job", job=job_of(lab, UNTIL_TOLD))
    await training.call("wait_for_job_conditions", name="pi", **UNTIL_RUNNING)
    assert await training.call("is_job_created", name="pi")
    assert await training.call("is_job_running", name="pi")
    assert not await training.call("is_job_succeeded", name="pi")
    [launcher] = await training.call("get_job_pod_names", name="pi", is_master=True)
    assert await _pods(training) == sorted([launcher, "pi-worker-0", "pi-worker-1"])
    assert await _pods(training, replica_type="launcher") == [launcher]
    assert await _pods(training, replica_type="worker") == ["pi-worker-0", "pi-worker-1"]
    assert await _pods(training, replica_type="worker", replica_index=1) == ["pi-worker-1"]

    cluster.kubectl("exec", "-n", lab.namespace, launcher, "--", "touch", "/tmp/go")
    followed, _ = await training.call("get_job_logs", name="pi", follow=True)
    done = await training.call("wait_for_job_conditions", name="pi", **WAIT)

    assert "rank 1 of 2 on pi-worker-1" in followed[launcher]
    assert done["status"]["replicaStatuses"]["Launcher"] == {"succeeded": 1}
    assert await training.call("is_job_succeeded", name="pi")
    for question in ("is_job_running", "is_job_failed", "is_job_restarting"):
        assert not await training.call(question, name="pi"), question
    conditions = await training.call("get_job_conditions", name="pi")
    assert [each["type"] for each in conditions] == ["Created", "Running", "Succeeded"]
    logs, events = await training.call("get_job_logs", name="pi", verbose=True)
    assert "pi is about 3.14" in logs[launcher]
    assert any("successfully completed" in each for each in events["mpijob/pi"])
    assert [each["metadata"]["name"] for each in await training.call("list_jobs")] == ["pi"]

    await training.call("delete_job", name="pi")

    async def has_no_pods() -> bool:
        return not await _pods(training)

    await lab.eventually("pi", has_no_pods)
    with pytest.raises(ClientError, match="Failed to get MPIJob"):
        await training.call("get_job", name="pi")


async def test_a_job_that_fails_is_reported_as_failed(lab: Lab, training: RemoteClient) -> None:
    await training.call("create_job", job=job_of(lab, "echo no data; exit 3"))

    with pytest.raises(ClientError, match="is Failed") as raised:
        await training.call("wait_for_job_conditions", name="pi", **WAIT)

    assert raised.value.kind == "RuntimeError"
    assert "exit code 3" in str(raised.value)
    assert await training.call("is_job_failed", name="pi")
    logs, _ = await training.call("get_job_logs", name="pi")
    assert list(logs.values()) == ["no data\n"]


async def test_a_job_that_is_wrong_is_refused_with_the_field(
    lab: Lab, training: RemoteClient
) -> None:
    wrong = changed(job_of(lab, "true"), "spec.mpiReplicaSpecs.Launcher.replicas", 2)

    with pytest.raises(ClientError, match=r"Launcher\W+replicas: .*must be 1"):
        await training.call("create_job", job=wrong)


async def test_a_suspended_job_starts_when_it_is_updated(lab: Lab, training: RemoteClient) -> None:
    suspended = changed(job_of(lab, "sleep 1000"), "spec.runPolicy", {"suspend": True})
    await training.call("create_job", job=suspended)
    await lab.becomes("pi", "Suspended")
    assert not await training.call("is_job_running", name="pi")
    job = await training.call("get_job", name="pi")

    await training.call("update_job", job=changed(job, "spec.runPolicy.suspend", False), name="pi")

    await training.call("wait_for_job_conditions", name="pi", **UNTIL_RUNNING)


async def test_the_script_of_the_how_to_page_works(
    client_python: str, own_kubeconfig: Path
) -> None:
    [script] = re.findall(r"^```python\n(.*?)^```", HOW_TO.read_text(), re.MULTILINE | re.DOTALL)

    process = await asyncio.create_subprocess_exec(
        client_python,
        "-c",
        script,
        env=os.environ | {"KUBECONFIG": str(own_kubeconfig)},
        stdout=asyncio.subprocess.PIPE,
    )
    printed, _ = await process.communicate()

    assert process.returncode == 0
    assert "pi is about 3.14" in printed.decode()


@pytest.fixture
def own_kubeconfig(lab: Lab, cluster: Cluster, tmp_path: Path) -> Path:
    """Where the namespace of the test is the default."""
    config = yaml.safe_load(cluster.kubeconfig().read_text())
    config["contexts"][0]["context"]["namespace"] = lab.namespace
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


async def _pods(training: RemoteClient, **selected: object) -> list[str]:
    return sorted(await training.call("get_job_pod_names", name="pi", **selected))
