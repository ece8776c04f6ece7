from collections import Counter

import pytest

from devcluster.control_plane import ControlPlane
from tests.support.waiting import block_until

pytestmark = pytest.mark.api

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def test_the_audit_log_has_the_user_of_each_write(start_control_plane):
    control_plane = start_control_plane(audit=True)
    admin, eve = control_plane.endpoint(), control_plane.endpoint("eve")
    for name in ("one", "two"):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        admin.request("POST", CONFIG_MAPS, body)
    admin.request("DELETE", f"{CONFIG_MAPS}/one")
    eve.request("DELETE", f"{CONFIG_MAPS}/two")

    def writes() -> Counter[tuple[str, str, int]]:
        return Counter(
            (record.user, record.verb, record.code)
            for record in control_plane.audit_records()
            if record.resource == "configmaps" and record.verb in ("create", "delete")
            if record.user in ("admin", "eve")
        )

    block_until(lambda: writes().total() >= 4)
    assert writes() == {
        ("admin", "create", 201): 2,
        ("admin", "delete", 200): 1,
        ("eve", "delete", 403): 1,
    }


def test_a_control_plane_without_an_audit_log_says_so():
    with pytest.raises(RuntimeError, match="audit=True"):
        ControlPlane().audit_records()
