"""How mpirun reaches workers without sshd: `scripts/kubexec.sh`, an exec that waits for them.

An init container brings the exec client (`cmd/kubectl-delivery`) to the launcher. Only the launcher
has it, and the permission: see `role`.
"""

from shlex import quote

from mpi_operator.api import MPIJob, names
from mpi_operator.api.launcher_transport import uses_exec
from mpi_operator.api.main_container import main_container
from mpi_operator.api.types import LauncherSpec
from mpi_operator.kube.resources import Manifest

from . import remote_shell, scripts
from .implementations import exec_environment
from .settings import Settings
from .volumes import Volume

SCRIPT_PATH = f"{scripts.PATH}/{scripts.KUBEXEC}"
CLIENT_VOLUME = Volume("mpi-job-kubectl", {"emptyDir": {}}, "/opt/kube")

_DELIVERY = "kubectl-delivery"
# A copy of a file of 6 MB. Quotas may require limits.
_RESOURCES = {"cpu": "100m", "memory": "64Mi", "ephemeral-storage": "64Mi"}
# So that the strictest Pod Security Standard admits it. The user is that of the main container.
_SECURITY: Manifest = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
_USER = ("runAsUser", "runAsGroup", "runAsNonRoot", "seLinuxOptions")


def is_used(job: MPIJob, settings: Settings) -> bool:
    """Whether the launcher of a job has the exec client."""
    return uses_exec(job) and not settings.is_local


def scripts_of(job: MPIJob) -> dict[str, str]:
    """The scripts in the ConfigMap."""
    worker = job.spec.worker
    container = str(main_container(job, worker)["name"]) if worker else ""
    kubexec = scripts.text(scripts.KUBEXEC).replace("@CONTAINER@", quote(container))
    return {scripts.KUBEXEC: kubexec, scripts.IDLE: scripts.text(scripts.IDLE)}


def launcher_environment(job: MPIJob) -> dict[str, str]:
    """The variables that make mpirun use the script, and those that the exec client reads."""
    return exec_environment(SCRIPT_PATH) | remote_shell.waiting_environment(job)


def account_name(job: MPIJob) -> str:
    """The service account of the launcher: that of its template, else one of its own."""
    return _given_account(job.spec.launcher) or names.launcher_access(job)


def has_own_account(job: MPIJob) -> bool:
    """Whether the launcher has a service account of its own."""
    return not _given_account(job.spec.launcher)


def with_client(job: MPIJob, pod_spec: Manifest, settings: Settings) -> Manifest:
    """The pod spec of a launcher with the exec client and the account that may use it."""
    given = pod_spec.get("initContainers") or []
    is_delivered = settings.is_local or any(each["name"] == _DELIVERY for each in given)
    delivery = [] if is_delivered else [_delivery(job, pod_spec, settings)]
    account = {} if settings.is_local else _account(job, pod_spec)
    # An older name of serviceAccountName, which must not contradict it.
    kept = {name: value for name, value in pod_spec.items() if name != "serviceAccount"}
    containers = [*given, *delivery]
    return {**kept, **account, **({"initContainers": containers} if containers else {})}


def _account(job: MPIJob, pod_spec: Manifest) -> Manifest:
    # The client needs the token, whatever the account or the template says.
    is_off = pod_spec.get("automountServiceAccountToken") is False
    return {
        "serviceAccountName": account_name(job),
        **({"automountServiceAccountToken": True} if is_off else {}),
    }


def _delivery(job: MPIJob, pod_spec: Manifest, settings: Settings) -> Manifest:
    main = main_container(job, job.spec.launcher)
    user = main.get("securityContext") or {}
    return {
        "name": _DELIVERY,
        "image": settings.kubectl_delivery_image,
        "imagePullPolicy": "IfNotPresent",
        "env": [
            {"name": "TARGET_DIR", "value": CLIENT_VOLUME.mount_path},
            {"name": "NAMESPACE", "value": job.metadata.namespace},
        ],
        "resources": {"requests": _RESOURCES, "limits": _RESOURCES},
        "securityContext": _SECURITY | {name: user[name] for name in _USER if name in user},
        "volumeMounts": [_client_mount(pod_spec, main["name"])],
    }


def _client_mount(pod_spec: Manifest, container: str) -> Manifest:
    """What the main container has at the path of the client: our volume, or the user's."""
    main = next(each for each in pod_spec["containers"] if each["name"] == container)
    path = CLIENT_VOLUME.mount_path
    return next(each for each in main["volumeMounts"] if each["mountPath"].rstrip("/") == path)


def _given_account(launcher: LauncherSpec) -> str:
    spec = launcher.template["spec"]
    return spec.get("serviceAccountName") or spec.get("serviceAccount") or ""
