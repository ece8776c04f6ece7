"""Katib's own code judges the jobs of its trials, and its labels find their launchers."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from devcluster import binaries
from devcluster.binaries import CannotBuild
from devcluster.cluster import Cluster
from mpi_operator.kube.resources import Manifest
from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import one_rank_each
from tests.cluster.operator.test_versions import V1
from tests.support.mpijobs import changed

HOW_TO = Path(__file__).parents[3] / "docs/how-to/use-katib.md"
COMMAND = "spec.mpiReplicaSpecs.Launcher.template.spec.containers.0.command"
TEMPLATE: Manifest = yaml.safe_load(
    re.findall(r"^```yaml\n(.*?)^```", HOW_TO.read_text(), re.MULTILINE | re.DOTALL)[0]
)["spec"]["trialTemplate"]


@pytest.fixture(scope="session")
def katib() -> Path:
    """The program that has Katib's decision."""
    try:
        return binaries.provide(["katib-trial-status"])["katib-trial-status"]
    except CannotBuild as error:
        pytest.skip(str(error))


async def test_a_trial_runs_and_succeeds(lab: Lab, cluster: Cluster, katib: Path) -> None:
    job = _trial(lab, ranks="2")
    [container] = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    mpirun = " ".join(container["command"])
    script = f"until test -e /tmp/go; do sleep 0.2; done; exec {mpirun}"
    await lab.client.create(V1, changed(job, COMMAND, ["sh", "-c", script]))
    await lab.runs("trial")

    assert await _judged(lab, katib) == {"condition": "Running"}
    [launcher] = await _primary_pods(lab)
    cluster.kubectl("exec", "-n", lab.namespace, launcher, "--", "touch", "/tmp/go")
    await lab.succeeds("trial")

    assert await lab.ranks("trial") == one_rank_each("trial")
    succeeded = await _judged(lab, katib)
    assert (succeeded["condition"], succeeded["reason"]) == ("Succeeded", "MPIJobSucceeded")


async def test_a_trial_that_fails_is_failed_with_the_reason(lab: Lab, katib: Path) -> None:
    failing = changed(_trial(lab, ranks="1"), COMMAND, ["sh", "-c", "exit 3"])
    await lab.client.create(V1, failing)

    await lab.fails("trial")

    failed = await _judged(lab, katib)
    assert failed["condition"] == "Failed"
    assert "exit code 3" in failed["message"]


def _trial(lab: Lab, *, ranks: str) -> Manifest:
    """The job that Katib makes of the template of the how-to page."""
    text = json.dumps(TEMPLATE["trialSpec"]).replace("${trialParameters.ranks}", ranks)
    return {**json.loads(text), "metadata": {"name": "trial", "namespace": lab.namespace}}


async def _primary_pods(lab: Lab) -> list[str]:
    """The pods whose metrics Katib collects: by labels, in the container that it expects."""
    pods = await lab.pods("trial")
    wanted = TEMPLATE["primaryPodLabels"].items()
    return [
        pod["metadata"]["name"]
        for pod in pods
        if wanted <= pod["metadata"]["labels"].items()
        and TEMPLATE["primaryContainerName"] in [c["name"] for c in pod["spec"]["containers"]]
    ]


async def _judged(lab: Lab, katib: Path) -> Any:
    conditions = {name: TEMPLATE[name] for name in ("successCondition", "failureCondition")}
    job = await lab.client.get(V1, "trial", lab.namespace)
    return _answer(katib, {"trial": {"spec": conditions}, "job": job})


def _answer(katib: Path, question: Manifest) -> Any:
    text = json.dumps(question)
    done = subprocess.run([katib], input=text, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)
