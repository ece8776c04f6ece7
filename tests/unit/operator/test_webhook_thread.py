"""The webhook as a part of the operator."""

import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Never

import pytest
from prometheus_client import CollectorRegistry

from mpi_operator.kube.resources import Key
from mpi_operator.operator import webhook_thread
from mpi_operator.operator.exit_codes import Exit, ExitCode
from mpi_operator.operator.options import Options, ResourceType


def test_api_servers_reach_it_by_the_name_of_its_service():
    settings = webhook_thread.settings(Options(lock_namespace="kubeflow", webhook_service="hook"))
    assert settings.names[0] == "hook.kubeflow.svc"
    assert "hook.kubeflow.svc.cluster.local" in settings.names
    assert settings.secret == Key("kubeflow", "mpi-operator-webhook")


def test_the_cluster_domain_is_in_its_certificate():
    assert "mpi-operator-webhook.mpi-operator.svc.a.b" in (
        webhook_thread.settings(Options(cluster_domain="a.b")).names
    )


def test_certificates_of_files():
    options = Options(webhook_cert_dir=Path("/tls"), webhook_port=1)
    settings = webhook_thread.settings(options)
    assert (settings.directory, settings.port) == (Path("/tls"), 1)


@pytest.mark.parametrize(
    ("options", "replicas"),
    [
        pytest.param({"gpus_per_node": 4}, 2, id="GPUs per node"),
        pytest.param({"gpus_per_node": 8}, 1, id="more of them"),
    ],
)
def test_the_flags_of_old_operators_reach_the_conversion(options, replicas):
    job = {
        "apiVersion": "kubeflow.org/v1alpha1",
        "kind": "MPIJob",
        "metadata": {"name": "a", "namespace": "b"},
        "spec": {"gpus": 8, "template": {"spec": {"containers": [{"name": "c", "image": "d"}]}}},
    }
    hub = webhook_thread.decisions(Options(**options)).convert(job, "v2beta1")
    assert hub["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == replicas


def test_units_that_are_not_gpus():
    job = {
        "apiVersion": "kubeflow.org/v1alpha1",
        "kind": "MPIJob",
        "metadata": {"name": "a", "namespace": "b"},
        "spec": {
            "processingUnits": 4,
            "template": {"spec": {"containers": [{"name": "c", "image": "d"}]}},
        },
    }
    options = Options(processing_resource_type=ResourceType.CPU, processing_units_per_node=2)
    worker = webhook_thread.decisions(options).convert(job, "v2beta1")["spec"]["mpiReplicaSpecs"][
        "Worker"
    ]
    [container] = worker["template"]["spec"]["containers"]
    assert set(container["resources"]["limits"]) == {"cpu"}


def test_nothing_of_it_is_loaded_unless_it_is_on():
    code = "import sys, mpi_operator.operator.main; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not [each for each in done.stdout.split() if each.startswith("mpi_operator.webhook")]


@asynccontextmanager
async def unreadable() -> AsyncIterator[Never]:
    raise PermissionError(13, "Permission denied", "/run/token")
    yield


async def test_credentials_that_cannot_be_read_are_not_a_port_in_use():
    with pytest.raises(Exit) as raised:
        async with webhook_thread.served(Options(webhook_port=0), unreadable, CollectorRegistry()):
            pass
    assert raised.value.code is ExitCode.BAD_CONFIGURATION
    assert "/run/token" in str(raised.value.fields["error"])


async def test_a_port_in_use_is_one():
    with socket.create_server(("", 0)) as taken:
        options = Options(webhook_port=taken.getsockname()[1])
        with pytest.raises(Exit) as raised:
            async with webhook_thread.served(options, unreadable, CollectorRegistry()):
                pass
    assert raised.value.code is ExitCode.PORT_IN_USE
