"""Compares the permissions of the operator with the requests that it sent in the tests.

python scripts/check_permissions.py DIRECTORY

Fails if a permission was not used, unless it is listed below with a reason, or if a request was
sent that no permission allows. The directory has what `tests/support/permissions.py` read from
audit logs: one file for each API server of the run.
"""

import json
import sys
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from mpi_operator.install import rbac
from mpi_operator.install.rbac import Rule

SUITES = ("api", "cluster")


class Permission(NamedTuple):
    """A verb on a resource."""

    group: str
    resource: str
    verb: str
    name: str = ""
    """Of the only object that it is about; empty for all."""

    def __str__(self) -> str:
        kind = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {kind}" + (f" {self.name!r}" if self.name else "")


GRANTED = (*rbac.OPERATOR, *rbac.LOCK, *rbac.EXEC, *rbac.GANG, *rbac.CERTIFICATES, *rbac.TRUST)
# Granted, although no test uses it.
UNUSED: dict[Permission, str] = {
    Permission("", "pods/exec", "get"): "held in order to grant it to launchers",
    Permission("", "pods/exec", "create"): "held in order to grant it to launchers",
    Permission("kubeflow.org", "mpijobs/finalizers", "update"): (
        "checked by an admission plugin when an owner reference is written, never a request"
    ),
}
# Not granted by us, because Kubernetes lets every account do it.
FOR_ALL: dict[Permission, str] = {}


def granted(rules: Iterable[Rule]) -> set[Permission]:
    """All that rules allow."""
    return {
        Permission(rule.group, resource, verb, name)
        for rule in rules
        for resource in rule.resources.split()
        for verb in rule.verbs.split()
        for name in rule.names or ("",)
    }


def unused(allowed: Collection[Permission], used: Collection[Permission]) -> Iterator[Permission]:
    """What is allowed and was not used."""
    for each in allowed:
        if not any(_allows(each, request) for request in used):
            yield each


def missing(allowed: Collection[Permission], used: Collection[Permission]) -> Iterator[Permission]:
    """What was used and is not allowed."""
    for request in used:
        if request not in FOR_ALL and not any(_allows(each, request) for each in allowed):
            yield request


def _allows(permission: Permission, request: Permission) -> bool:
    return permission[:3] == request[:3] and permission.name in ("", request.name)


def problems(used: Collection[Permission]) -> list[str]:
    """What is wrong with the permissions, or with the list of exceptions."""
    allowed = granted(GRANTED)
    idle = set(unused(allowed, used))
    excused = idle & set(UNUSED)
    stale = set(UNUSED) - excused
    return [
        *(f"granted and never used: {each}" for each in sorted(idle - excused)),
        *(f"used and not granted: {each}" for each in sorted(missing(allowed, used))),
        *(f"an exception, but it is used or not granted: {each}" for each in sorted(stale)),
    ]


def main(directory: Path) -> int:
    files = list(directory.glob("*.json"))
    if absent := [suite for suite in SUITES if not list(directory.glob(f"{suite}-*.json"))]:
        print(f"Permissions are not checked: no {' or '.join(absent)} tests ran")
        return 0
    used = {Permission(*each) for file in files for each in json.loads(file.read_text())}
    found = problems(used)
    print("\n".join(found) or f"The operator used its {len(granted(GRANTED))} permissions.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
