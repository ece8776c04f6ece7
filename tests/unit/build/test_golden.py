"""Whole objects, to be read in review. `pytest tests/unit/build --update-golden` writes them."""

import pytest

from mpi_operator.build import scripts
from mpi_operator.build.config_map import config_map
from mpi_operator.build.launcher_job import launcher_job
from mpi_operator.build.pod_group import pod_group
from mpi_operator.build.role import role
from mpi_operator.build.role_binding import role_binding
from mpi_operator.build.service import service
from mpi_operator.build.service_account import service_account
from mpi_operator.build.ssh_secret import KeyPair, ssh_secret
from mpi_operator.build.worker_pod import worker_pod
from tests.unit.build.jobs import DELIVERY, DOMAIN, NONE, PLUGINS, VOLCANO, make_job, pods

OVERRIDES = make_job(
    mpiImplementation="Intel",
    slotsPerWorker=5,
    sshAuthMountPath="/home/mpiuser/.ssh",
    runPolicy={"ttlSecondsAfterFinished": 1, "activeDeadlineSeconds": 2, "backoffLimit": 3},
    launcher={
        "restartPolicy": "Never",
        "template": {
            "metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}},
            "spec": {
                "hostNetwork": True,
                "restartPolicy": "OnFailure",
                "containers": [
                    {
                        "name": "launcher",
                        "image": "example.com/intel:1",
                        "securityContext": {"runAsUser": 1000},
                        "env": [{"name": "I_MPI_PERHOST", "value": "2"}],
                        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                    },
                    {"name": "sidecar", "image": "example.com/sidecar:1"},
                ],
                "volumes": [{"name": "data", "emptyDir": {}}],
            },
        },
    },
    worker={
        "replicas": 20,
        "restartPolicy": "OnFailure",
        "template": {
            "spec": {
                "hostNetwork": True,
                "containers": [
                    {
                        "name": "worker",
                        "image": "example.com/intel:1",
                        "command": ["/entrypoint.sh"],
                        "env": [{"name": "FOO", "value": "bar"}],
                        "terminationMessagePolicy": "File",
                    }
                ],
            }
        },
    },
)
BY_EXEC = make_job(annotations={"mpi-operator.kubeflow.org/transport": "exec"})
BOTH = make_job(runLauncherAsWorker=True)
GANG = make_job(
    annotations={"scheduling.volcano.sh/queue-name": "research"},
    launcher=pods(resources={"requests": {"cpu": 1, "memory": "2Gi"}}),
    worker=pods(resources={"requests": {"cpu": 10, "memory": "20Gi"}}) | {"replicas": 2},
)
KEYS = KeyPair(private="private\n", public="public\n")
TIMED = make_job(
    annotations={"mpi-operator.kubeflow.org/init-timeout": "10m"},
    worker=pods({"hostNetwork": True}),
)


def without_texts(manifest):
    """A ConfigMap that only names the scripts: they are files of their own."""
    all_scripts = (*scripts.NAMES, scripts.KUBEXEC, scripts.IDLE)
    named = {name: f"scripts/{name}" for name in all_scripts if name in manifest["data"]}
    return {**manifest, "data": manifest["data"] | named}


@pytest.mark.parametrize(
    ("name", "manifest"),
    [
        ("launcher-open-mpi", launcher_job(make_job(), NONE, suspend=False)),
        (
            "launcher-intel",
            launcher_job(make_job(mpiImplementation="Intel"), NONE, suspend=False),
        ),
        (
            "launcher-mpich",
            launcher_job(make_job(mpiImplementation="MPICH"), NONE, suspend=False),
        ),
        ("launcher-as-worker", launcher_job(BOTH, NONE, suspend=False)),
        ("launcher-overrides", launcher_job(OVERRIDES, DOMAIN, suspend=True)),
        ("worker-open-mpi", worker_pod(make_job(), 0, NONE)),
        ("worker-intel", worker_pod(make_job(mpiImplementation="Intel"), 0, NONE)),
        ("worker-mpich", worker_pod(make_job(mpiImplementation="MPICH"), 0, NONE)),
        ("worker-launcher-as-worker", worker_pod(BOTH, 0, NONE)),
        ("worker-overrides", worker_pod(OVERRIDES, 12, DOMAIN)),
        ("exec-launcher", launcher_job(BY_EXEC, DELIVERY, suspend=False)),
        ("exec-worker", worker_pod(BY_EXEC, 0, NONE)),
        ("exec-config-map", without_texts(config_map(BY_EXEC, [1], NONE))),
        ("exec-service-account", service_account(BY_EXEC)),
        ("exec-role", role(BY_EXEC)),
        ("exec-role-binding", role_binding(BY_EXEC)),
        ("service", service(make_job())),
        ("launcher-host-network", launcher_job(TIMED, NONE, suspend=False)),
        ("worker-host-network", worker_pod(TIMED, 1, NONE)),
        ("config-map", without_texts(config_map(BOTH, [1], NONE, {"example.com/note": "a"}))),
        ("ssh-secret", ssh_secret(make_job(), KEYS)),
        ("pod-group-volcano", pod_group(GANG, VOLCANO, {}, with_launcher=True)),
        ("pod-group-scheduler-plugins", pod_group(GANG, PLUGINS, {}, with_launcher=True)),
        ("worker-volcano", worker_pod(GANG, 1, VOLCANO)),
        ("worker-scheduler-plugins", worker_pod(GANG, 1, PLUGINS)),
    ],
)
def test_golden(golden, name, manifest):
    golden(name, manifest)
