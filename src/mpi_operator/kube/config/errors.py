"""The one error of this package."""

from mpi_operator.kube.errors import KubeError


class ConfigError(KubeError):
    """What is configured cannot work. The message says where it stands and what to do about it.

    It is raised `from None` where the cause could quote a secret (a YAML parser quotes the line).
    """
