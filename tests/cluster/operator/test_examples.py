"""The examples, applied to a cluster as they are."""

import re
from pathlib import Path

import pytest
import yaml

from devcluster.cluster import Cluster
from mpi_operator.kube.resources import PERSISTENT_VOLUMES, Manifest
from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import one_rank_each

EXAMPLES = Path(__file__).parents[3] / "examples"
FILES = {
    each["metadata"]["name"]: path
    for path in EXAMPLES.glob("*/*.yaml")
    if not path.parent.name.startswith("v1")  # tests/peers/old_manifests runs those
    and path.parent.name != "horovod"  # and test_horovod these
    for each in yaml.safe_load_all(path.read_text())
    if each["kind"] == "MPIJob"
}
# What each says when it has done what it is for.
SAYS = {
    "pi": "pi is about 3.1",
    "pi-c": "pi is about 3.1",
    "pi-mpich": "pi is about 3.1",
    "pi-intel": "pi is about 3.1",
    "train": "all 2 ranks have the same weights",
    "elastic": "10 rounds are done",
    "checkpoint": "after run 1: pi is about 3.1",
}


@pytest.mark.usefixtures("example_images")
async def test_every_example_does_what_it_is_for(lab: Lab, cluster: Cluster) -> None:
    await lab.client.create(PERSISTENT_VOLUMES, _volume(lab.namespace))
    for path in FILES.values():
        cluster.kubectl("apply", "-n", lab.namespace, "-f", str(path))

    await lab.succeed_all(FILES, 180)

    for name in FILES:
        assert SAYS[name] in await lab.log(name), await lab.account(name)
        assert await _ranks(lab, name) == one_rank_each(name)


def _volume(namespace: str) -> Manifest:
    """For the claim of the checkpoint example: the cluster has no provisioner."""
    spec = {
        "capacity": {"storage": "10Mi"},
        "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain",
        "hostPath": {"path": f"/run/{namespace}", "type": "DirectoryOrCreate"},
        "claimRef": {"namespace": namespace, "name": "checkpoint"},
    }
    return {
        "apiVersion": PERSISTENT_VOLUMES.api_version,
        "kind": PERSISTENT_VOLUMES.kind,
        "metadata": {"name": f"{namespace}-checkpoint"},
        "spec": spec,
    }


async def _ranks(lab: Lab, name: str) -> dict[int, str]:
    """Where they ran. The training example names all in one line."""
    listed = re.search(r"^Ranks: +\[(.*)\]$", await lab.log(name), re.MULTILINE)
    if listed is None:
        return await lab.ranks(name)
    return dict(enumerate(re.findall(r"'([^']*)'", listed[1])))
