"""The types of the older API versions, for their schemas and their reference.

They are only described here: jobs are decoded as v2beta1, after the conversion. No field has a
default and every object accepts unknown fields, so that the API server neither adds nor drops
anything in these versions. Fields that v2beta1 added appear in older versions as they are.
"""

from collections.abc import Mapping

from mpi_operator.api.types import Part

from . import v1, v1alpha1, v1alpha2

OLD_VERSIONS: Mapping[str, type[Part]] = {
    "v1": v1.MPIJob,
    "v1alpha2": v1alpha2.MPIJob,
    "v1alpha1": v1alpha1.MPIJob,
}
