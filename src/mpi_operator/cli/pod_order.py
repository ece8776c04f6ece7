"""The order in which pods are shown."""

import re

from mpi_operator.kube.resources import Manifest

from .job_stream import role_of


def by_role_and_index(pod: Manifest) -> tuple[str, list[int]]:
    """Sort key: the launcher first, then the workers by index."""
    return role_of(pod), [int(index) for index in re.findall(r"\d+$", pod["metadata"]["name"])]
