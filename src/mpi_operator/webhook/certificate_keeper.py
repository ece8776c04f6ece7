"""Keeps the certificate of this replica equal to the one in the Secret, and rotates it.

Every replica does the same: it reads the Secret, takes the steps that are due, and writes them back
unless another replica was faster. A process that cannot reach the API server keeps what it has.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from mpi_operator.kube import errors
from mpi_operator.kube.backoff import Backoff
from mpi_operator.kube.client import Client
from mpi_operator.kube.resources import SECRETS, Key

from . import certificates, rotation
from .certificate_secret import Corrupted, is_stored, read_state, secret, with_state
from .certificates import Pair
from .metrics import WebhookMetrics
from .repeated_errors import RepeatedErrorLog
from .rotation import Issuer, State, Times
from .tls import LiveContext

logger = logging.getLogger(__name__)

_RACES = 10
_BACKOFF = Backoff(base=1.0, cap=60.0)
_ADVICE: dict[type[errors.KubeError], str] = {
    errors.Forbidden: "allow create of secrets, and get and update of this one: apply deploy/rbac/",
    errors.NotFound: "create the namespace, or choose another one with --lock-namespace",
}


@dataclass(frozen=True)
class Wanted:
    """What certificates to have."""

    secret: Key
    names: Sequence[str]
    times: Times = field(default_factory=Times)

    @property
    def issuer(self) -> Issuer:
        return Issuer(self._new_authority, self._new_serving)

    def _new_authority(self, now: float) -> Pair:
        return certificates.new_authority(now, self.times.authority)

    def _new_serving(self, authority: Pair, names: Sequence[str], now: float) -> Pair:
        return certificates.new_serving(authority, names, now, self.times.serving)


class CertificateKeeper:
    """The certificates of this replica.

    It makes some at the start, which become those of all replicas if there is no Secret yet. It
    serves none before it has read or created the Secret, because no API server would trust it.
    """

    def __init__(
        self,
        wanted: Wanted,
        live: LiveContext,
        metrics: WebhookMetrics,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.on_change: list[Callable[[], None]] = []
        """Called when `authorities` have changed."""
        self._wanted = wanted
        self._live = live
        self._metrics = metrics
        self._clock = clock
        self._error_log = RepeatedErrorLog(
            "Cannot read or write the Secret of the webhook", _ADVICE
        )
        self._is_shared = False
        self._refreshing = asyncio.Lock()  # so that an older reading never replaces a newer one
        self._state = rotation.first_state(wanted.issuer, wanted.names, clock())

    @property
    def authorities(self) -> tuple[str, ...]:
        """The certificates that the API server has to trust; none before the Secret was read."""
        return self._state.authorities if self._is_shared else ()

    async def run(self, client: Client, trusted: Callable[[], Collection[str] | None]) -> NoReturn:
        """Follow the Secret until cancelled. `trusted` are the authorities in every bundle."""
        failures = 0
        while True:
            try:
                await self.refresh(client, trusted())
                self._error_log.clear()
                failures = 0
            except errors.KubeError as error:
                self._error_log.report(error, secret=str(self._wanted.secret))
                failures += 1
            await asyncio.sleep(self._pause(failures))

    async def refresh(self, client: Client, trusted: Collection[str] | None) -> None:
        """Read the Secret, take the steps that are due, and serve the result."""
        async with self._refreshing:
            before = self.authorities
            self._state = await self._shared(client, trusted)
            self._is_shared = True
            self._serve()
        if self.authorities != before:
            for call in self.on_change:
                call()

    async def _shared(self, client: Client, trusted: Collection[str] | None) -> State:
        """The state in the Secret after the steps that are due."""
        for _ in range(_RACES):
            try:
                return await self._stepped(client, trusted)
            except (errors.Conflict, errors.AlreadyExists):
                continue  # another replica was faster: read what it wrote
        return await self._stepped(client, trusted)

    async def _stepped(self, client: Client, trusted: Collection[str] | None) -> State:
        key = self._wanted.secret
        try:
            found = await client.get(SECRETS, key.name, key.namespace)
        except errors.NotFound:
            state = self._advanced(self._state, None)
            await client.create(SECRETS, secret(key, state))
            logger.info("Created the Secret of the webhook", extra={"secret": str(key)})
            return state
        stored = self._read(found)
        state = self._advanced(stored or self._state, trusted if stored else None)
        if not is_stored(found, state):
            await client.replace(SECRETS, with_state(found, state))
            logger.info("Updated the Secret of the webhook", extra=self._facts(state))
        return state

    def _read(self, found: dict[str, object]) -> State | None:
        try:
            return read_state(found)
        except Corrupted as error:
            facts = {"secret": str(self._wanted.secret), "error": str(error)}
            logger.error("The Secret of the webhook is corrupted, replacing it", extra=facts)
            return None

    def _advanced(self, state: State, trusted: Collection[str] | None) -> State:
        return rotation.next_state(
            state,
            self._clock(),
            times=self._wanted.times,
            issuer=self._wanted.issuer,
            names=self._wanted.names,
            trusted=trusted,
        )

    def _serve(self) -> None:
        serving = self._state.serving
        if self._live.load(serving.certificate, serving.key):
            self._metrics.certificate_expires(serving.expires_at)
            logger.info("Serving a new certificate", extra=self._facts(self._state))

    def _pause(self, failures: int) -> float:
        """Seconds until the next reading: earlier if a step is due, or if the last one failed."""
        times = self._wanted.times
        if failures:
            return min(times.reread, _BACKOFF.delay(failures, random.random()))
        due = rotation.next_change(self._state, times) - self._clock()
        return min(times.reread, max(due, times.reread / 20))

    def _facts(self, state: State) -> dict[str, object]:
        return {
            "secret": str(self._wanted.secret),
            "authorities": len(state.authorities),
            "expires_at": time.strftime("%FT%TZ", time.gmtime(state.serving.expires_at)),
        }
