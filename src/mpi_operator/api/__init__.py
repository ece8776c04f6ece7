"""What a job is. No I/O, and nothing of the rest of the project.

* `types` is an MPIJob, with defaults and documentation of every field.
* `decode_job` makes one from a manifest, or says everything that is wrong with it; `warnings` gives
  advice. Behind them: `conformance` (types), `validation` (rules), `complaints` (sentences).
* `names` and `labels` say what the parts of a job are called, `conditions` how its state is told.
* `definition` is the custom resource definition, from `schema` (types), `cel` (rules) and `docs`.
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
