"""The MPIJob API: types, validation, names. Does no I/O and imports nothing else of the project.

* `types` defines an MPIJob, with the default and the documentation of every field.
* `decode_job` decodes and validates a manifest, `warnings` reports what will surprise its author.
  Both use `schema_validation` (types), `validation` (rules) and `field_errors` (messages).
* `names` and `labels` are those of a job's objects. `conditions` maintains those in its status.
* `crd` is the CustomResourceDefinition, made from `schema` (types) and `cel` (rules).
* `versions` describes the older versions, `conversion` converts between all of them.
"""

from . import conditions, labels, names
from .decode import decode_job, decode_leniently, warnings
from .field_errors import FieldError, InvalidJob
from .types import MPIJob, MPIJobSpec, MPIJobStatus, manifest

__all__ = [
    "FieldError",
    "InvalidJob",
    "MPIJob",
    "MPIJobSpec",
    "MPIJobStatus",
    "conditions",
    "decode_job",
    "decode_leniently",
    "labels",
    "manifest",
    "names",
    "warnings",
]
