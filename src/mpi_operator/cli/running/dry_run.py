"""`mpijob run --dry-run`: what would run, as manifests for a cluster.

A file of its own, because a job that runs does not load it.
"""

from mpi_operator.cli.job_input.file_objects import title
from mpi_operator.cli.job_input.workload import Workload
from mpi_operator.cli.manifests import manifest_text
from mpi_operator.cli.manifests.manifest_files import Document
from mpi_operator.kube.resources import Manifest


def text(workload: Workload, output: str) -> str:
    """The jobs, after the objects that they need, as YAML or JSON."""
    given = workload.jobs[0].namespace  # of objects from the command line
    objects = [
        _placed(each, workload.namespaces.get(title(each), given)) for each in workload.objects
    ]
    jobs = [_placed(job.manifest, job.namespace) for job in workload.jobs]
    return manifest_text.joined([Document(each, "") for each in (*objects, *jobs)], output)


def _placed(manifest: Manifest, namespace: str) -> Manifest:
    """A manifest in the namespace that its author chose, if any, instead of that of local runs."""
    metadata = {name: value for name, value in manifest["metadata"].items() if name != "namespace"}
    if namespace:
        metadata["namespace"] = namespace
    return {**manifest, "metadata": metadata}
