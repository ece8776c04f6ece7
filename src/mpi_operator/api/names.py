"""What the parts of a job are called. Names are fixed, so that nothing is ever made twice.

Other programs rely on them: Flyte links logs by `<job>-worker-<index>`.
"""

from .types import MPIJob

_DEFAULT_CLUSTER_DOMAIN = "cluster.local"


def service(job: MPIJob) -> str:
    """The headless Service, through which hosts find each other."""
    return job.metadata.name


def config_map(job: MPIJob) -> str:
    """The hostfile and the script that discovers hosts."""
    return f"{job.metadata.name}-config"


def ssh_secret(job: MPIJob) -> str:
    """The key pair of the job."""
    return f"{job.metadata.name}-ssh"


def launcher(job: MPIJob) -> str:
    """The launcher job, and the host name of its pod."""
    return f"{job.metadata.name}-launcher"


def worker(job: MPIJob, index: int) -> str:
    """One worker pod, and its host name."""
    return f"{job.metadata.name}-worker-{index}"


def pod_group(job: MPIJob) -> str:
    """What a gang scheduler knows the pods by."""
    return job.metadata.name


def worker_index(job: MPIJob, pod_name: str) -> int | None:
    """Which worker a pod is. Its label would be off by one where the launcher is a worker too."""
    digits = pod_name.removeprefix(f"{job.metadata.name}-worker-")
    is_worker = digits.isdecimal() and pod_name == worker(job, int(digits))
    return int(digits) if is_worker else None


def domain(job: MPIJob, cluster_domain: str = "") -> str:
    """Where the hosts of a job are; without a cluster domain, from anywhere in the cluster."""
    domain = f"{service(job)}.{job.metadata.namespace}.svc"
    return f"{domain}.{cluster_domain}" if cluster_domain else domain


def search_domain(job: MPIJob, cluster_domain: str = "") -> str:
    """What makes bare host names work. A search domain has to be complete."""
    return domain(job, cluster_domain or _DEFAULT_CLUSTER_DOMAIN)


def host(job: MPIJob, pod_name: str, cluster_domain: str = "") -> str:
    """How a pod of the job is reached from the others."""
    return f"{pod_name}.{domain(job, cluster_domain)}"


def hosts(job: MPIJob, cluster_domain: str = "") -> list[str]:
    """Every host that ranks run on: the launcher first, if it is one of them."""
    launchers = [launcher(job)] if job.spec.run_launcher_as_worker else []
    workers = [worker(job, index) for index in range(job.spec.worker_count)]
    return [host(job, pod, cluster_domain) for pod in (*launchers, *workers)]
