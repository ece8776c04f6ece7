"""What operators asked of API servers, saved for `scripts/check_permissions.py`.

With `MPI_OPERATOR_PERMISSIONS=directory`, as in `make test-permissions`, the API servers of tests
write an audit log of service accounts.
"""

import json
import os
import re
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from devcluster.audit import Record
from devcluster.control_plane import ControlPlane
from scripts.check_permissions import Permission

DIRECTORY = os.environ.get("MPI_OPERATOR_PERMISSIONS")
_OPERATOR = re.compile(r"system:serviceaccount:[^:]+:mpi-operator")


def options() -> dict[str, Any]:
    """What a control plane is started with."""
    return {"audited_groups": ["system:serviceaccounts"]} if DIRECTORY else {}


def save(control_plane: ControlPlane, suite: str) -> None:
    """Save what operators did on a control plane that is about to stop."""
    if DIRECTORY:
        Path(DIRECTORY).mkdir(parents=True, exist_ok=True)
        used = sorted(requested(control_plane.audit_records()))
        (Path(DIRECTORY) / f"{suite}-{uuid.uuid4()}.json").write_text(json.dumps(used))


def requested(records: Iterable[Record]) -> set[Permission]:
    """The permissions that operators needed for their requests, whether they had them or not."""
    return {
        Permission(each.group, _resource(each), each.verb, each.name)
        for each in records
        if each.resource and _OPERATOR.fullmatch(each.user)
    }


def _resource(record: Record) -> str:
    return f"{record.resource}/{record.subresource}" if record.subresource else record.resource
