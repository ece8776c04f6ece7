"""The manifests by which the API server finds the webhooks."""

from pathlib import Path

import pytest
import yaml

from mpi_operator.api.conversion import VERSIONS
from mpi_operator.api.crd import custom_resource_definition
from mpi_operator.install import deployment, webhooks
from mpi_operator.install.installation import Installation

DEPLOY = Path(__file__).parents[3] / "deploy"
STANDARD = Installation()
SERVICE, *CONFIGURATIONS = webhooks.everything(STANDARD)
WEBHOOKS = [webhook for each in CONFIGURATIONS for webhook in each["webhooks"]]


def test_the_service_leads_to_the_port_of_every_replica_ready_or_not():
    spec = deployment.deployment(STANDARD)["spec"]["template"]
    ports = {each["name"]: each["containerPort"] for each in spec["spec"]["containers"][0]["ports"]}
    (port,) = SERVICE["spec"]["ports"]
    assert (port["port"], ports[port["targetPort"]]) == (443, 9443)
    assert SERVICE["spec"]["selector"].items() <= spec["metadata"]["labels"].items()
    assert SERVICE["spec"]["publishNotReadyAddresses"]


def test_everything_calls_that_service():
    conversion = custom_resource_definition()["spec"]["conversion"]["webhook"]
    called = [each["clientConfig"]["service"] for each in (conversion, *WEBHOOKS)]
    assert [each.pop("path") for each in called] == ["/convert", "/mutate", "/validate"]
    metadata = SERVICE["metadata"]
    expected = {"namespace": metadata["namespace"], "name": metadata["name"], "port": 443}
    assert called == [expected] * 3


@pytest.mark.parametrize("webhook", WEBHOOKS, ids=lambda webhook: webhook["name"])
def test_each_version_is_admitted_in_its_own_terms(webhook):
    (rule,) = webhook["rules"]
    assert rule["apiVersions"] == list(VERSIONS)
    assert webhook["matchPolicy"] == "Exact"


@pytest.mark.parametrize("webhook", WEBHOOKS, ids=lambda webhook: webhook["name"])
def test_statuses_and_a_dead_webhook_stop_nothing(webhook):
    (rule,) = webhook["rules"]
    assert rule["resources"] == ["mpijobs"]
    assert webhook["failurePolicy"] == "Ignore"
    assert webhook["timeoutSeconds"] <= 5


def test_no_manifest_has_a_ca():
    assert not [each for each in DEPLOY.rglob("*.yaml") if "caBundle" in each.read_text()]


def test_one_file_installs_all_of_it():
    installed = list(yaml.safe_load_all((DEPLOY / "v2beta1/mpi-operator.yaml").read_text()))
    parts = [
        *yaml.safe_load_all((DEPLOY / "webhooks/webhooks.yaml").read_text()),
        *yaml.safe_load_all((DEPLOY / "rbac/webhooks.yaml").read_text()),
        custom_resource_definition(),
    ]
    assert not [each for each in parts if each not in installed]
