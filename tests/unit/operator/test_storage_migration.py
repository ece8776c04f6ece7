"""Which CRDs allow a migration, and what becomes of jobs that cannot be written."""

from collections.abc import AsyncIterator
from typing import Any, cast

import msgspec
import pytest

from mpi_operator.api.crd import custom_resource_definition, v2beta1_only
from mpi_operator.kube import errors
from mpi_operator.kube.client import Page
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import Key, Manifest
from mpi_operator.operator import migrate_storage
from mpi_operator.operator.storage_migration import CannotMigrate, migrate, refusal


def stored_as(crd: Manifest, *versions: str) -> Manifest:
    return crd | {
        "metadata": {"name": "mpijobs.kubeflow.org", "resourceVersion": "1"},
        "status": {"storedVersions": list(versions)},
    }


def of_training_operator() -> Manifest:
    version = {"name": "v1", "served": True, "storage": True}
    return stored_as({"spec": {"versions": [version]}}, "v1")


@pytest.mark.parametrize(
    ("crd", "version", "why"),
    [
        pytest.param(stored_as(custom_resource_definition(), "v1"), "v2beta1", "", id="ours"),
        pytest.param(stored_as(custom_resource_definition(), "v2beta1"), "v1", "", id="back"),
        pytest.param(stored_as(v2beta1_only(), "v2beta1"), "v2beta1", "", id="nothing to do"),
        pytest.param(of_training_operator(), "v2beta1", "serve v2beta1", id="training-operator's"),
        pytest.param(
            stored_as(custom_resource_definition(), "v1"), "v9", "serve v9", id="no such version"
        ),
        pytest.param(
            stored_as(v2beta1_only(), "v1", "v2beta1"), "v2beta1", "not this", id="no conversion"
        ),
    ],
)
def test_which_definitions_allow_a_migration(crd, version, why):
    assert why in refusal(crd, version)
    assert bool(why) == bool(refusal(crd, version))


class Server:
    """Two jobs, one of which cannot be written."""

    def __init__(self, crd: Manifest) -> None:
        self.crd = crd

    async def get(self, *_: Any) -> Manifest:
        return self.crd

    async def pages(self, *_: Any, **__: Any) -> AsyncIterator[Page]:
        for name in ("good", "bad"):
            raw = msgspec.json.encode({"metadata": {"namespace": "lab", "name": name}})
            yield Page([msgspec.Raw(raw)], "1", is_last=name == "bad")

    async def patch(
        self, resource: Any, name: str, patch: Manifest, namespace: str = "", **_: Any
    ) -> None:
        assert resource.plural == "mpijobs", "the definition is left alone"
        if name == "bad":
            raise errors.Invalid(errors.Status(message="spec is wrong"))


async def test_a_job_that_cannot_be_written_is_reported_and_nothing_is_recorded():
    server = Server(stored_as(custom_resource_definition(), "v1", "v2beta1"))
    said: list[str] = []
    progress = await migrate(cast("HttpClient", server), "v2beta1", said.append)
    assert progress.written == 1
    assert progress.failed == {Key("lab", "bad"): "spec is wrong"}
    assert said[-1] == "Wrote 1 jobs, 1 failed"


async def test_a_definition_of_another_operator_is_refused():
    server = Server(of_training_operator())
    with pytest.raises(CannotMigrate, match="does not serve v2beta1, only v1"):
        await migrate(cast("HttpClient", server), "v2beta1", print)


def test_a_wrong_flag_is_explained(capsys):
    with pytest.raises(SystemExit):
        migrate_storage.main(["--page-size", "0"])
    assert "from 1 to 5000" in capsys.readouterr().err
