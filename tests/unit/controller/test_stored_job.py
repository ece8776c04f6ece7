"""Jobs in the cache, decoded."""

import msgspec

from mpi_operator.api import decode_job
from mpi_operator.controller.cached_types import StoredJob
from tests.support.mpijobs import mpijob

OWNER = {"apiVersion": "flyte.lyft.com/v1alpha1", "kind": "flyteworkflow", "name": "f", "uid": "u"}


def test_a_job_that_something_else_owns_is_valid():
    manifest = mpijob("pi", "lab")
    manifest["metadata"]["ownerReferences"] = [OWNER]
    stored = msgspec.json.decode(msgspec.json.encode(manifest), type=StoredJob)

    assert decode_job(stored.manifest()).metadata.name == "pi"
