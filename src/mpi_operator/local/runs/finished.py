"""Reads the record of a finished run: its objects and logs as they were last."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Protocol

from mpi_operator.kube.client import Listing, LogOptions, Selector
from mpi_operator.kube.resources import PODS, Manifest, Resource
from mpi_operator.local.apiserver import api_errors
from mpi_operator.local.apiserver.selectors import parse_selection
from mpi_operator.local.apiserver.served_kinds import BUILT_IN, Kind
from mpi_operator.local.apiserver.stored_object import encode_object
from mpi_operator.local.default_container import default_container
from mpi_operator.local.kubelet import pod_logs
from mpi_operator.local.kubelet.container_logs import recorded_lines

from . import records


class Reader(Protocol):
    """The read-only part of `kube.client.Client`, which active and finished runs have."""

    async def list(
        self, resource: Resource, namespace: str = "", selector: Selector = Selector()
    ) -> Listing: ...

    def log(
        self, name: str, namespace: str, options: LogOptions = LogOptions()
    ) -> AsyncGenerator[bytes, None]: ...


class FinishedRun:
    """A `Reader` of the record of a run."""

    def __init__(self, directory: Path, record: records.Record) -> None:
        self.directory = directory
        self._objects = record.objects

    async def list(
        self, resource: Resource, namespace: str = "", selector: Selector = Selector()
    ) -> Listing:
        kind = next((each for each in BUILT_IN if each.resource == resource), Kind(resource))
        selection = parse_selection(kind, namespace, selector)
        of_kind = (each for each in self._objects if _is_of(resource, each))
        return Listing(
            [each for each in of_kind if selection.matches(encode_object(each, 0, kind.fields))],
            "0",
        )

    async def log(
        self, name: str, namespace: str, options: LogOptions = LogOptions()
    ) -> AsyncGenerator[bytes, None]:
        """The log lines of a container of a pod, by default of the main one."""
        pods = (await self.list(PODS, namespace, Selector(fields=f"metadata.name={name}"))).items
        if not pods:
            raise api_errors.not_found(PODS, name)
        container = options.container or default_container(pods[-1])
        file = pod_logs.newest(self.directory / pod_logs.LOGS, name, container)
        if file is not None:
            async with aclosing(recorded_lines(file, options)) as lines:
                async for line in lines:
                    yield line


def _is_of(resource: Resource, manifest: Manifest) -> bool:
    return (manifest.get("apiVersion"), manifest.get("kind")) == (
        resource.api_version,
        resource.kind,
    )
