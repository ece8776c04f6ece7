"""The caBundle of the CRD and of the webhook configurations, kept by the webhook itself."""

import base64
from contextlib import suppress
from typing import Any

import pytest

from devcluster.control_plane import ControlPlane
from devcluster.ports import free_port
from mpi_operator.api.crd import custom_resource_definition
from mpi_operator.kube import errors
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    Manifest,
)
from mpi_operator.webhook import ca_bundle, certificates
from mpi_operator.webhook.rotation import Times
from tests.support.mpijobs import mpijob
from tests.support.operator import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES
from tests.support.waiting import until
from tests.support.webhook_replica import (
    CONFIGURATION,
    CRD,
    MUTATING,
    V1,
    VALIDATING,
    Replica,
    bundles,
    configuration,
    crd,
    edit,
)

SECRET = "mpi-operator-webhook"
ANNOTATION = "test.example.com/touched"


@pytest.fixture
def replica(webhook_plane: ControlPlane, home: str) -> Replica:
    return Replica(webhook_plane.kubeconfig(), home, free_port())


async def install(client: HttpClient, replica: Replica) -> None:
    await client.create(CUSTOM_RESOURCE_DEFINITIONS, crd(replica.url))
    for resource in (VALIDATING, MUTATING):
        await client.create(resource, configuration(resource, replica.url))


async def authority(client: HttpClient, home: str) -> str:
    """The authority in the Secret; empty if there is none yet."""
    try:
        return str((await client.get(SECRETS, SECRET, home))["data"]["ca.crt"])
    except errors.NotFound:
        return ""


async def works(client: HttpClient, home: str) -> bool:
    """Whether a v1 job can be written and read: through conversion, mutation and validation."""
    job = mpijob("probe", home) | {"apiVersion": "kubeflow.org/v1"}
    try:
        with suppress(errors.AlreadyExists):
            await client.create(V1, job)
        found = await client.get(V1, "probe", home)
        return bool(found["apiVersion"] == "kubeflow.org/v1")
    except errors.ApiError:
        return False


async def test_every_bundle_is_set_and_nothing_else(admin, home, replica):
    await install(admin, replica)
    before = await admin.get(CUSTOM_RESOURCE_DEFINITIONS, CRD)
    async with replica.running():
        await until(lambda: works(admin, home))
        assert set(await bundles(admin)) == {await authority(admin, home)}
        after = await admin.get(CUSTOM_RESOURCE_DEFINITIONS, CRD)
    del after["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"]
    assert after["spec"] == before["spec"]
    [ours] = (each for each in after["metadata"]["managedFields"] if each["manager"] == SECRET)
    assert ours["operation"] == "Apply"


async def test_a_replaced_crd_is_repaired(admin, home, replica):
    await install(admin, replica)
    async with replica.running():
        await until(lambda: works(admin, home))
        await set_conversion(admin, crd(replica.url)["spec"]["conversion"])
        await until(lambda: has_all_bundles(admin, home))
        await until(lambda: works(admin, home))


async def test_a_foreign_bundle_in_one_webhook_is_repaired(admin, home, replica):
    await install(admin, replica)
    async with replica.running():
        await until(lambda: has_all_bundles(admin, home))
        await edit(admin, VALIDATING, CONFIGURATION, set_second_bundle)
        await until(lambda: has_all_bundles(admin, home))


def set_second_bundle(manifest: Manifest) -> None:
    foreign = certificates.new_authority(0, 2**33).certificate
    bundle = base64.b64encode(foreign.encode()).decode()
    manifest["webhooks"][1]["clientConfig"]["caBundle"] = bundle


async def set_conversion(client: HttpClient, conversion: Manifest) -> None:
    def change(manifest: Manifest) -> None:
        manifest["spec"]["conversion"] = conversion

    await edit(client, CUSTOM_RESOURCE_DEFINITIONS, CRD, change)


async def has_all_bundles(client: HttpClient, home: str) -> bool:
    wanted = await authority(client, home)
    return bool(wanted) and set(await bundles(client)) == {wanted}


async def test_an_object_that_is_as_it_should_be_is_not_written(admin, home, replica):
    await install(admin, replica)
    async with replica.running():
        await until(lambda: has_all_bundles(admin, home))
        touched = {"metadata": {"annotations": {ANNOTATION: "yes"}}}
        patched = await admin.patch(CUSTOM_RESOURCE_DEFINITIONS, CRD, touched)
        # A repair that is needed comes after the touch, and has been seen after it.
        await edit(admin, MUTATING, CONFIGURATION, remove_first_bundle)
        await until(lambda: has_all_bundles(admin, home))
        after = await admin.get(CUSTOM_RESOURCE_DEFINITIONS, CRD)
        assert after["metadata"]["generation"] == patched["metadata"]["generation"]


def remove_first_bundle(manifest: Manifest) -> None:
    del manifest["webhooks"][0]["clientConfig"]["caBundle"]


async def test_objects_that_come_later_are_waited_for(admin, home, replica, caplog):
    async with replica.running():
        await until(lambda: len(messages(caplog, ca_bundle.NOT_FOUND)) == 3)
        await install(admin, replica)
        await until(lambda: works(admin, home))
    assert len(messages(caplog, ca_bundle.NOT_FOUND)) == 3, "each once"
    assert all(record.advice for record in messages(caplog, ca_bundle.NOT_FOUND))


async def test_a_crd_without_webhook_is_left_alone_until_it_has_one(admin, home, replica, caplog):
    await install(admin, replica)
    await set_conversion(admin, {"strategy": "None"})
    async with replica.running():
        await until(lambda: bool(messages(caplog, ca_bundle.NOT_USED)))
        found = await admin.get(CUSTOM_RESOURCE_DEFINITIONS, CRD)
        assert found["spec"]["conversion"] == {"strategy": "None"}
        await set_conversion(admin, crd(replica.url)["spec"]["conversion"])
        await until(lambda: works(admin, home))


async def test_the_webhook_of_another_operator_is_left_alone(admin, home, replica, caplog):
    await install(admin, replica)
    other = custom_resource_definition()["spec"]["conversion"]
    await set_conversion(admin, other)
    async with replica.running():
        await until(lambda: bool(messages(caplog, ca_bundle.NOT_USED)))
        await until(lambda: has_admission_bundles(admin, home))
        found = await admin.get(CUSTOM_RESOURCE_DEFINITIONS, CRD)
        assert found["spec"]["conversion"] == other


async def has_admission_bundles(client: HttpClient, home: str) -> bool:
    wanted = await authority(client, home)
    return bool(wanted) and set((await bundles(client))[1:]) == {wanted}


async def test_a_corrupted_or_deleted_secret_is_made_again_and_stays_trusted(
    admin, home, replica, caplog
):
    replica.times = Times(reread=0.2)
    await install(admin, replica)
    async with replica.running():
        await until(lambda: works(admin, home))
        before = await admin.get(SECRETS, SECRET, home)
        await admin.patch(SECRETS, SECRET, {"data": {"ca.key": None}}, home)
        await until(lambda: has_data(admin, home, before))
        await admin.delete(SECRETS, SECRET, home)
        await until(lambda: has_data(admin, home, before))
        assert await works(admin, home)
    assert [record.error for record in messages(caplog, "corrupted")] == ["it has no ca.key"]
    assert "PRIVATE" not in caplog.text


async def has_data(client: HttpClient, home: str, before: Manifest) -> bool:
    try:
        return bool((await client.get(SECRETS, SECRET, home))["data"] == before["data"])
    except errors.NotFound:
        return False


async def test_it_waits_for_permissions_and_needs_no_more_than_these(
    admin, home, webhook_plane, caplog
):
    user = f"webhook-{home}"
    replica = Replica(webhook_plane.kubeconfig(user), home, free_port())
    await install(admin, replica)
    async with replica.running():
        await until(lambda: any("secrets" in record.error for record in forbidden(caplog)))
        await allow(admin, ROLES, ROLE_BINDINGS, user, home, SECRET_RULES)
        await until(lambda: len({record.message for record in forbidden(caplog)}) == 4)
        await allow(admin, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, user, "", BUNDLE_RULES)
        await until(lambda: works(admin, home))


SECRET_RULES = [
    {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
    {
        "apiGroups": [""],
        "resources": ["secrets"],
        "resourceNames": [SECRET],
        "verbs": ["get", "update"],
    },
]
BUNDLE_RULES = [
    {
        "apiGroups": ["apiextensions.k8s.io"],
        "resources": ["customresourcedefinitions"],
        "resourceNames": [CRD],
        "verbs": ["get", "watch", "patch"],
    },
    {
        "apiGroups": ["admissionregistration.k8s.io"],
        "resources": ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"],
        "resourceNames": [CONFIGURATION],
        "verbs": ["get", "watch", "patch"],
    },
]


async def allow(client, roles, bindings, user, namespace, rules):
    where = {"namespace": namespace} if namespace else {}
    await client.create(roles, {"metadata": {"name": user, **where}, "rules": rules})
    group = "rbac.authorization.k8s.io"
    binding = {
        "metadata": {"name": user, **where},
        "roleRef": {"apiGroup": group, "kind": roles.kind, "name": user},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }
    await client.create(bindings, binding)


def forbidden(caplog):
    return [
        record
        for record in caplog.records
        if "forbidden" in getattr(record, "error", "") and record.advice
    ]


def messages(caplog: pytest.LogCaptureFixture, text: str) -> list[Any]:
    return [record for record in caplog.records if text in record.getMessage()]
