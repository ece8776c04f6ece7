"""The schema of pod templates is the one of the API server that we test with."""

import json

from devcluster.control_plane import ControlPlane
from mpi_operator.api import schema
from scripts.pod_template_schema import pod_template


async def test_the_stored_schema_is_the_servers(control_plane: ControlPlane):
    """If not, run `python -m scripts.pod_template_schema`."""
    openapi = control_plane.endpoint().request("GET", "/openapi/v3/api/v1").json()
    assert json.dumps(pod_template(openapi), sort_keys=True) == json.dumps(
        schema.pod_template(), sort_keys=True
    )
