"""The RoleBinding that gives a launcher the Role of its job."""

from mpi_operator.api import MPIJob, labels, names
from mpi_operator.kube.resources import ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS, Manifest

from .exec_shell import account_name
from .ownership import metadata


def role_binding(job: MPIJob) -> Manifest:
    """The Role, for the launcher's own account or for that of its template."""
    return {
        "apiVersion": ROLE_BINDINGS.api_version,
        "kind": ROLE_BINDINGS.kind,
        "metadata": metadata(job, names.launcher_access(job), labels.object_labels(job)),
        "roleRef": {
            "apiGroup": ROLES.group,
            "kind": ROLES.kind,
            "name": names.launcher_access(job),
        },
        "subjects": subjects(job),
    }


def subjects(job: MPIJob) -> list[Manifest]:
    """Who has the Role."""
    return [
        {
            "kind": SERVICE_ACCOUNTS.kind,
            "name": account_name(job),
            "namespace": job.metadata.namespace,
        }
    ]
