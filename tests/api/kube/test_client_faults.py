"""The HTTP client when the API server dies, hangs, is too busy or changes its mind about us."""

import asyncio
import itertools
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from devcluster.control_plane import ControlPlane
from mpi_operator.kube import config, errors
from mpi_operator.kube.client import Selector
from mpi_operator.kube.config.config import Credential, FixedCredentials
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.metrics import Metrics
from mpi_operator.kube.resources import (
    CONFIG_MAPS,
    NAMESPACES,
    SERVICE_ACCOUNTS,
    Manifest,
    Resource,
)
from tests.api.kube.conftest import IMPATIENT
from tests.contract.client import config_map
from tests.support.waiting import until

CLUSTER_ROLE_BINDINGS = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)
FLOW_SCHEMAS = Resource(
    "flowcontrol.apiserver.k8s.io", "v1", "flowschemas", "FlowSchema", namespaced=False
)
PRIORITY_LEVELS = Resource(
    "flowcontrol.apiserver.k8s.io",
    "v1",
    "prioritylevelconfigurations",
    "PriorityLevelConfiguration",
    namespaced=False,
)


async def test_a_write_lost_with_the_server_is_reported_and_never_done_twice(
    fragile: ControlPlane, fragile_client: HttpClient
):
    """Killed in the middle of many creates: who got an answer has an object, who got none may.

    An AlreadyExists would show that the client sent a write again behind the caller's back.
    """
    created, uncertain = set[str](), set[str]()

    async def create(name: str) -> None:
        manifest = config_map(name, "default", labels={"batch": "lost"})
        try:
            await fragile_client.create(CONFIG_MAPS, manifest)
            created.add(name)
        except errors.ConnectionLost:
            uncertain.add(name)

    async with asyncio.TaskGroup() as tasks:
        for number in range(300):
            tasks.create_task(create(f"lost-{number}"))
        await until(lambda: len(created) > 50)
        await asyncio.to_thread(fragile.kill_apiserver)
        await asyncio.to_thread(fragile.start_apiserver)
    listed = await fragile_client.list(CONFIG_MAPS, "default", Selector(labels="batch=lost"))
    existing = {each["metadata"]["name"] for each in listed.items}
    assert created <= existing <= created | uncertain
    assert uncertain, "the server died between two requests: nothing was tested"


async def test_a_read_survives_the_death_of_the_server(
    fragile: ControlPlane, fragile_client: HttpClient
):
    await asyncio.to_thread(fragile.kill_apiserver)
    reading = asyncio.create_task(fragile_client.get(NAMESPACES, "default"))
    await asyncio.to_thread(fragile.start_apiserver)
    assert (await reading)["metadata"]["name"] == "default"


async def test_a_read_on_a_hanging_connection_is_tried_again(
    fragile: ControlPlane, fragile_client: HttpClient
):
    await fragile_client.get(NAMESPACES, "default")
    fragile.pause_apiserver()
    reading = asyncio.create_task(fragile_client.get(NAMESPACES, "default"))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(reading), IMPATIENT.read + 0.5)
    fragile.resume_apiserver()
    assert (await reading)["metadata"]["name"] == "default"


async def test_a_write_on_a_hanging_connection_is_reported_in_time(
    fragile: ControlPlane, fragile_client: HttpClient
):
    await fragile_client.get(NAMESPACES, "default")
    fragile.pause_apiserver()
    with pytest.raises(errors.DeadlineExceeded):
        await fragile_client.create(CONFIG_MAPS, config_map("hung", "default"))


async def test_a_server_that_is_too_busy_is_asked_again_when_it_said(
    fragile: ControlPlane, fragile_client: HttpClient
):
    """Priority and fairness refuse with 429; the caller sees only that it took longer."""
    await allow_everything(fragile_client, {"kind": "Group", "name": "crowd"})
    await admit_one_at_a_time(fragile_client, "crowd")
    metrics = Metrics(registry := CollectorRegistry())
    crowd = config.load(kubeconfig=fragile.kubeconfig("somebody", groups=["crowd"]))
    async with HttpClient(crowd, metrics=metrics) as client:
        numbers = itertools.count()

        async def create_many() -> bool:
            """Whether any of them was refused: new rules take the server a moment."""
            names = [f"busy-{next(numbers)}" for _ in range(100)]
            made = [client.create(CONFIG_MAPS, config_map(name, "default")) for name in names]
            await asyncio.gather(*made)
            return refusals(registry) > 0

        await until(create_many, seconds=60)
    listed = await fragile_client.list(CONFIG_MAPS, "default")
    names = {each["metadata"]["name"] for each in listed.items}
    assert {f"busy-{number}" for number in range(next(numbers))} <= names


async def test_a_rotated_token_is_picked_up_without_a_failed_call(
    fragile: ControlPlane, fragile_client: HttpClient, tmp_path: Path
):
    """The old token stops working when its account is replaced: 401, read the file, try again."""
    await fragile_client.create(NAMESPACES, {"metadata": {"name": "rotating"}})
    account = {"kind": "ServiceAccount", "name": "robot", "namespace": "rotating"}
    await allow_everything(fragile_client, account)
    (tmp_path / "ca.crt").write_bytes(fragile.ca.read_bytes())
    old = await new_account_with_token(fragile_client)
    (tmp_path / "token").write_text(old)
    async with HttpClient(in_cluster(fragile, tmp_path)) as robot:
        await robot.get(NAMESPACES, "rotating")
        await fragile_client.delete(SERVICE_ACCOUNTS, "robot", "rotating")
        new = await new_account_with_token(fragile_client)
        await until(lambda: is_refused(fragile, old))
        (tmp_path / "token").write_text(new)
        assert (await robot.get(NAMESPACES, "rotating"))["metadata"]["name"] == "rotating"


async def allow_everything(client: HttpClient, subject: Manifest) -> None:
    await client.create(
        CLUSTER_ROLE_BINDINGS,
        {
            "metadata": {"name": f"everything-for-{subject['name']}"},
            "subjects": [subject],
            "roleRef": {"kind": "ClusterRole", "name": "cluster-admin"},
        },
    )


async def admit_one_at_a_time(client: HttpClient, group: str) -> None:
    """Have the server answer 429 to the rest at once."""
    limited = {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}}
    await client.create(
        PRIORITY_LEVELS,
        {"metadata": {"name": group}, "spec": {"type": "Limited", "limited": limited}},
    )
    await client.create(
        FLOW_SCHEMAS,
        {
            "metadata": {"name": group},
            "spec": {
                "priorityLevelConfiguration": {"name": group},
                "matchingPrecedence": 2,
                "rules": [
                    {
                        "subjects": [{"kind": "Group", "group": {"name": group}}],
                        "resourceRules": [
                            {
                                "verbs": ["*"],
                                "apiGroups": ["*"],
                                "resources": ["*"],
                                "namespaces": ["*"],
                                "clusterScope": True,
                            }
                        ],
                    }
                ],
            },
        },
    )


def refusals(registry: CollectorRegistry) -> float:
    labels = {"verb": "create", "resource": "configmaps", "code": "429"}
    return registry.get_sample_value("rest_client_requests_total", labels) or 0


async def new_account_with_token(client: HttpClient) -> str:
    metadata = {"name": "robot", "namespace": "rotating"}
    await client.create(SERVICE_ACCOUNTS, {"metadata": metadata})
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "metadata": metadata,
        "spec": {},
    }
    issued = await client.create(SERVICE_ACCOUNTS, request, subresource="token")
    token: str = issued["status"]["token"]
    return token


def in_cluster(control_plane: ControlPlane, account: Path) -> config.Config:
    """What a pod with this account sees."""
    return config.in_cluster(
        account=account,
        environ={
            "KUBERNETES_SERVICE_HOST": control_plane.address,
            "KUBERNETES_SERVICE_PORT": str(control_plane.ports["kube-apiserver"]),
        },
    )


async def is_refused(control_plane: ControlPlane, token: str) -> bool:
    """Whether the server has stopped to accept the token: it remembers a good one for seconds."""
    settings = config.load(kubeconfig=control_plane.kubeconfig())
    bearer = FixedCredentials(Credential((("Authorization", f"Bearer {token}"),)))
    try:
        async with HttpClient(replace(settings, credentials=bearer)) as client:
            await client.get(NAMESPACES, "rotating")
    except errors.Unauthorized:
        return True
    return False
