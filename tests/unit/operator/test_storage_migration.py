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
from mpi_operator.operator.exit_codes import ExitCode
from mpi_operator.operator.storage_migration import (
    CannotMigrate,
    Progress,
    Unfinished,
    migrate,
    refusal,
)


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
            yield Page([msgspec.Raw(raw)], "1")

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
    assert said[-1] == "Wrote 1 job, 1 failed"


class ExpiredOnce(Server):
    """The list expires after both jobs were seen, and the bad one is deleted meanwhile."""

    is_deleted = False
    recorded: Manifest | None = None

    async def pages(self, *_: Any, **__: Any) -> AsyncIterator[Page]:
        async for page in super().pages():
            yield page
        if not self.is_deleted:
            self.is_deleted = True
            raise errors.Gone(errors.Status(code=410))

    async def patch(
        self, resource: Any, name: str, patch: Manifest, namespace: str = "", **options: Any
    ) -> None:
        if options:
            self.recorded = patch["status"]
        elif name == "bad" and self.is_deleted:
            raise errors.NotFound(errors.Status(code=404))
        else:
            await super().patch(resource, name, patch, namespace)


async def test_a_job_that_failed_and_was_deleted_does_not_count_as_failed():
    server = ExpiredOnce(stored_as(custom_resource_definition(), "v1", "v2beta1"))
    said: list[str] = []
    progress = await migrate(cast("HttpClient", server), "v2beta1", said.append)
    assert "List expired, starting again" in said
    assert progress.failed == {}
    assert server.recorded == {"storedVersions": ["v2beta1"]}


class ChangedMeanwhile(Server):
    """Someone makes v1 the storage version again while jobs are written."""

    async def patch(self, *_: Any, **__: Any) -> None:
        versions = self.crd["spec"]["versions"]
        changed = [each | {"storage": each["name"] == "v1"} for each in versions]
        self.crd = self.crd | {"spec": self.crd["spec"] | {"versions": changed}}


async def test_another_change_of_the_storage_version_leaves_the_migration_unfinished():
    server = ChangedMeanwhile(stored_as(custom_resource_definition(), "v1", "v2beta1"))
    with pytest.raises(Unfinished, match="was changed to v1 meanwhile"):
        await migrate(cast("HttpClient", server), "v2beta1", print)


@pytest.mark.parametrize(
    ("ending", "code", "said"),
    [
        pytest.param(CannotMigrate("not ours"), ExitCode.KIND_MISSING, "not ours", id="refused"),
        pytest.param(
            Unfinished("changed"), ExitCode.BUG, "changed; run the command again", id="unfinished"
        ),
        pytest.param(
            Progress(failed={Key("lab", "bad"): "wrong"}),
            ExitCode.BUG,
            "1 job was not written. Correct or delete it and run the command again",
            id="one job",
        ),
        pytest.param(
            Progress(failed={Key("lab", name): "wrong" for name in "ab"}),
            ExitCode.BUG,
            "2 jobs were not written. Correct or delete them and run the command again",
            id="two jobs",
        ),
    ],
)
def test_exit_codes_and_last_lines(monkeypatch, capsys, ending, code, said):
    async def run(*_: Any) -> Progress:
        if isinstance(ending, Exception):
            raise ending
        return cast("Progress", ending)

    monkeypatch.setattr(migrate_storage, "_run", run)
    assert migrate_storage.main([]) == code
    assert capsys.readouterr().err.endswith(f"mpi-operator migrate-storage: {said}\n")


async def test_a_definition_of_another_operator_is_refused():
    server = Server(of_training_operator())
    with pytest.raises(CannotMigrate, match="does not serve v2beta1, only v1"):
        await migrate(cast("HttpClient", server), "v2beta1", print)


def test_a_wrong_flag_is_explained(capsys):
    with pytest.raises(SystemExit):
        migrate_storage.main(["--page-size", "0"])
    assert "from 1 to 5000" in capsys.readouterr().err
