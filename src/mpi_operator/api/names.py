"""The names of a job's objects. They are fixed, so no object is ever created twice.

Other programs rely on them: Flyte links to logs by `<job>-worker-<index>`.
"""

from collections.abc import Iterable

from .types import MPIJob

_DEFAULT_CLUSTER_DOMAIN = "cluster.local"


def service(job: MPIJob) -> str:
    """The headless Service that gives pods their DNS names."""
    return job.metadata.name


def config_map(job: MPIJob) -> str:
    """The ConfigMap with the hostfile and the host discovery script."""
    return f"{job.metadata.name}-config"


def ssh_secret(job: MPIJob) -> str:
    """The Secret with the SSH key pair."""
    return f"{job.metadata.name}-ssh"


def launcher(job: MPIJob) -> str:
    """The launcher's Job, and the host name of its pod."""
    return launcher_of(job.metadata.name)


def launcher_of(job_name: str) -> str:
    """The same for a job of which only the name is known."""
    return f"{job_name}-launcher"


def launcher_access(job: MPIJob) -> str:
    """The ServiceAccount, Role and RoleBinding of a launcher that starts ranks by exec."""
    return launcher(job)


def worker(job: MPIJob, index: int) -> str:
    """A worker pod, and its host name."""
    return f"{job.metadata.name}-worker-{index}"


def pod_group(job: MPIJob) -> str:
    """The PodGroup for a gang scheduler."""
    return job.metadata.name


def worker_index(job: MPIJob, pod_name: str) -> int | None:
    """The index of a worker pod; None for other pods.

    The label differs by one where the launcher runs ranks, too.
    """
    digits = pod_name.removeprefix(f"{job.metadata.name}-worker-")
    is_worker = digits.isdecimal() and pod_name == worker(job, int(digits))
    return int(digits) if is_worker else None


def domain(job: MPIJob, cluster_domain: str = "") -> str:
    """The DNS domain of the job's hosts; without a cluster domain it works in any cluster."""
    domain = f"{service(job)}.{job.metadata.namespace}.svc"
    return f"{domain}.{cluster_domain}" if cluster_domain else domain


def search_domain(job: MPIJob, cluster_domain: str = "") -> str:
    """The DNS search domain that resolves bare host names. It has to be fully qualified."""
    return domain(job, cluster_domain or _DEFAULT_CLUSTER_DOMAIN)


def host(job: MPIJob, pod_name: str, cluster_domain: str = "") -> str:
    """The DNS name of a pod of the job."""
    return f"{pod_name}.{domain(job, cluster_domain)}"


def hosts(job: MPIJob, cluster_domain: str = "") -> list[str]:
    """Every host that runs ranks; if the launcher does, it comes first."""
    launchers = [launcher(job)] if job.spec.run_launcher_as_worker else []
    return [host(job, pod, cluster_domain) for pod in (*launchers, *workers(job))]


def workers(job: MPIJob, indexes: Iterable[int] | None = None) -> list[str]:
    """Every worker pod. They are numbered from 0, unless the job shrank in another way."""
    numbers = range(job.spec.worker_count) if indexes is None else sorted(indexes)
    return [worker(job, index) for index in numbers]
