"""The container of a pod that is meant where none is named. In a file of its own, for all packages.

Logs are read from it, and ranks run in it: the main container of a role.
"""

from mpi_operator.kube.resources import Manifest

_ANNOTATION = "kubectl.kubernetes.io/default-container"  # kubectl's own


def default_container(pod: Manifest) -> str:
    """The annotated container if the pod has it, else the first one."""
    names: list[str] = [each["name"] for each in pod["spec"]["containers"]]
    chosen = (pod["metadata"].get("annotations") or {}).get(_ANNOTATION)
    return chosen if chosen in names else names[0]
