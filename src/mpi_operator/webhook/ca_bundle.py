"""Keeps the `caBundle` of the CRD and of the webhook configurations equal to our authorities.

It writes nothing else of these objects, as a field manager of its own, and only if the bundle is
not what it should be. It watches them, so it repairs one within moments of a `kubectl replace`. A
webhook that is another operator's Service is left alone.

Several replicas do this with what each knows of the Secret, and none may remove an authority that
another one has just added. So a replica reads the Secret *after* the object, and writes only if the
object is still the one that it has read: an addition to the object is later than that to the
Secret.
"""

import asyncio
import base64
import logging
import random
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import NoReturn, Protocol, TypeAlias

from mpi_operator.api import types
from mpi_operator.kube import errors
from mpi_operator.kube.backoff import Backoff
from mpi_operator.kube.client import Client, EventType, WatchOptions
from mpi_operator.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, Key, Manifest, Resource

from .certificates import BadCertificate, split
from .repeated_errors import RepeatedErrorLog

logger = logging.getLogger(__name__)

MANAGER = "mpi-operator-webhook"
CONFIGURATIONS = "mpi-operator"
NOT_FOUND = "CRD or webhook configuration not found, waiting for it"
NOT_USED = "CRD or webhook configuration does not use this operator's webhook, waiting"

_BACKOFF = Backoff(base=1.0, cap=60.0)
_WATCH_SECONDS = (300.0, 600.0)
_ADVICE: dict[type[errors.KubeError], str] = {
    errors.Forbidden: "allow get, watch and patch of this object: apply deploy/rbac/",
}


class StaleAuthorities(errors.KubeError):
    """The Secret cannot be read now, so no bundle may change. Reported elsewhere."""


class Applying(Client, Protocol):
    """A client that can also apply fields as a manager."""

    async def apply(
        self, resource: Resource, manifest: Manifest, *, manager: str, force: bool = False
    ) -> Manifest: ...


class Authorities(Protocol):
    """The certificates to trust, as this replica knows them."""

    @property
    def authorities(self) -> tuple[str, ...]: ...


Clients: TypeAlias = Mapping[str, Manifest]


@dataclass(frozen=True)
class Target:
    """An object with bundles: how to find those in it, and what to apply to set them."""

    resource: Resource
    name: str
    clients: Callable[[Manifest], Clients]
    """The `clientConfig` of each webhook by name; empty if the object uses none."""
    fields: Callable[[Iterable[str], str], Manifest]
    """The fields that set the bundle of these webhooks."""
    advice: str

    def __str__(self) -> str:
        return f"{self.resource.kind} {self.name}"


def targets() -> tuple[Target, ...]:
    """Everything whose bundle the API server uses."""
    return (
        Target(
            CUSTOM_RESOURCE_DEFINITIONS,
            f"{types.PLURAL}.{types.GROUP}",
            _conversion_client,
            _conversion_fields,
            "v2beta1 works, other versions do not: apply the CRD file that has all versions",
        ),
        *(
            Target(
                _configurations(plural, kind),
                CONFIGURATIONS,
                _admission_clients,
                _admission_fields,
                "jobs are not checked when they are created: apply the manifest again",
            )
            for plural, kind in (
                ("validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
                ("mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
            )
        ),
    )


def _configurations(plural: str, kind: str) -> Resource:
    return Resource("admissionregistration.k8s.io", "v1", plural, kind, namespaced=False)


def _conversion_client(crd: Manifest) -> Clients:
    conversion = crd.get("spec", {}).get("conversion") or {}
    if conversion.get("strategy") != "Webhook":
        return {}
    return {"conversion": (conversion.get("webhook") or {}).get("clientConfig") or {}}


def _conversion_fields(_: Iterable[str], bundle: str) -> Manifest:
    return {"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": bundle}}}}}


def _admission_clients(configuration: Manifest) -> Clients:
    webhooks = configuration.get("webhooks") or ()
    return {each["name"]: each.get("clientConfig") or {} for each in webhooks}


def _admission_fields(names: Iterable[str], bundle: str) -> Manifest:
    return {"webhooks": [{"name": name, "clientConfig": {"caBundle": bundle}} for name in names]}


def _is_of(client: Manifest, service: Key) -> bool:
    """Whether a webhook is this Service. One with an address is ours, too."""
    given = client.get("service")
    return not given or (given.get("namespace"), given.get("name")) == service


def encoded(authorities: Sequence[str]) -> str:
    """A `caBundle` with these certificates."""
    return base64.b64encode("".join(authorities).encode()).decode()


class BundleKeeper:
    """Keeps the bundles of one object."""

    def __init__(
        self,
        client: Applying,
        target: Target,
        service: Key,
        source: Authorities,
        refresh: Callable[[], Awaitable[None]],
    ) -> None:
        """`refresh` makes `source` read the Secret again; StaleAuthorities if it cannot."""
        self.bundles: tuple[frozenset[str], ...] | None = None
        """The authorities in each bundle of the object; None if not known."""
        self.changed = asyncio.Event()
        """To be set when the authorities have changed."""
        self._client = client
        self._target = target
        self._service = service
        self._source = source
        self._refresh = refresh
        self._error_log = RepeatedErrorLog(f"Cannot keep the caBundle of {target}", _ADVICE)
        self._advised = ""

    async def run(self) -> NoReturn:
        """Keep them until cancelled."""
        failures = 0
        while True:
            try:
                await self._follow()
                failures = 0
            except errors.KubeError as error:
                failures += 1
                self.bundles = None
                if not isinstance(error, StaleAuthorities):
                    self._error_log.report(error, object=str(self._target))
                await asyncio.sleep(_BACKOFF.delay(failures, random.random()))

    async def _follow(self) -> None:
        """Repair the object now and after each change of it, until the authorities change."""
        self.changed.clear()
        found = await self._get()
        await self.repair(found)
        self._error_log.clear()
        watching = asyncio.ensure_future(self._watch(found))
        other = asyncio.ensure_future(self.changed.wait())
        try:
            await asyncio.wait({watching, other}, return_when=asyncio.FIRST_COMPLETED)
            if watching.done():
                watching.result()
        finally:
            other.cancel()
            watching.cancel()
            # Not `await watching`: suppressing its cancellation could suppress our own.
            await asyncio.wait({watching, other})
            if not watching.cancelled():
                watching.exception()  # else asyncio would log it

    async def _watch(self, found: Manifest | None) -> None:
        events = self._client.watch(
            self._target.resource,
            "",
            WatchOptions(
                # Without a version a watch begins with the object, should it exist by now.
                resource_version=found["metadata"]["resourceVersion"] if found else "",
                fields=f"metadata.name={self._target.name}",
                timeout=random.uniform(*_WATCH_SECONDS),
            ),
        )
        async with aclosing(events):
            async for event in events:
                if event.type is not EventType.BOOKMARK:
                    await self.repair(None if event.type is EventType.DELETED else event.object)

    async def _get(self) -> Manifest | None:
        try:
            return await self._client.get(self._target.resource, self._target.name)
        except errors.NotFound:
            return None

    async def repair(self, found: Manifest | None) -> None:
        """Set the bundles of the object if they are not what they should be."""
        clients = self._clients(found)
        self._advise(found is not None, bool(clients))
        if not self._is_current(clients):
            await self._refresh()
        if found and not self._is_current(clients) and self._source.authorities:
            clients = self._clients(await self._write(found, clients)) or clients
        bundles = (each.get("caBundle") or "" for each in clients.values())
        self.bundles = tuple(map(_certificates, bundles))

    def _clients(self, found: Manifest | None) -> Clients:
        """Those webhooks of the object that are ours."""
        clients = self._target.clients(found) if found else {}
        return {name: each for name, each in clients.items() if _is_of(each, self._service)}

    def _is_current(self, clients: Clients) -> bool:
        wanted = encoded(self._source.authorities)
        return all(each.get("caBundle") == wanted for each in clients.values())

    async def _write(self, found: Manifest, clients: Clients) -> Manifest | None:
        """Write the bundles; None if the object has changed meanwhile: the watch will tell."""
        target = self._target
        fields = target.fields(clients, encoded(self._source.authorities))
        manifest = {
            "apiVersion": target.resource.api_version,
            "kind": target.resource.kind,
            "metadata": {
                "name": target.name,
                "resourceVersion": found["metadata"]["resourceVersion"],
            },
            **fields,
        }
        try:
            written = await self._client.apply(
                target.resource, manifest, manager=MANAGER, force=True
            )
        except errors.Conflict:
            return None
        logger.info("Set a caBundle", extra={"object": str(target)})
        return written

    def _advise(self, exists: bool, has_clients: bool) -> None:
        """Log once that the object cannot make use of the webhook."""
        problem = ""
        if not exists:
            problem = NOT_FOUND
        elif not has_clients:
            problem = NOT_USED
        if problem and problem != self._advised:
            extra = {"object": str(self._target), "advice": self._target.advice}
            logger.warning(problem, extra=extra)
        self._advised = problem


def _certificates(bundle: str) -> frozenset[str]:
    try:
        return frozenset(split(base64.b64decode(bundle).decode()))
    except (BadCertificate, ValueError):
        return frozenset()


def trusted_by_all(
    keepers: Sequence[BundleKeeper], authorities: Collection[str]
) -> set[str] | None:
    """Those of the authorities that are in every bundle; None if a bundle is not known."""
    bundles: list[frozenset[str]] = []
    for keeper in keepers:
        if keeper.bundles is None:
            return None
        bundles += keeper.bundles
    return {each for each in authorities if all(each in bundle for bundle in bundles)}
