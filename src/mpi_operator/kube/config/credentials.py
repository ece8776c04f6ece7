"""What we show with a request, and where it comes from when it changes over time."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from .errors import ConfigError
from .headers import Headers
from .tls import ClientCertificate

logger = logging.getLogger(__name__)

# The kubelet renews a projected token when a fifth of its life is left: two minutes or more.
REREAD_SECONDS = 60.0


@dataclass(frozen=True)
class Credential:
    """What to show with one request. Two that show the same are equal."""

    headers: Headers = field(default=(), repr=False)
    """`Authorization` and `Impersonate-*`: pairs, because `Impersonate-Group` may repeat."""
    certificate: ClientCertificate | None = None


class Credentials(Protocol):
    """Who we are, now."""

    async def current(self) -> Credential:
        """What to show now; cheap when nothing changed, so ask before every request."""

    async def refused(self, credential: Credential) -> bool:
        """Tell that the server answered 401 to this one; True if there is another one to try.

        Raises ConfigError when a new one should be had but cannot: that explains more than the 401.
        """


class Fixed:
    """A credential that never changes."""

    def __init__(self, credential: Credential) -> None:
        self._credential = credential

    async def current(self) -> Credential:
        return self._credential

    async def refused(self, credential: Credential) -> bool:
        return credential != self._credential


class Reread:
    """A credential made of files, which somebody else renews.

    Files are read in the event loop: they are small, local and read once a minute, which is
    cheaper than a thread. A file that cannot be read later on does not take away what we hold.
    """

    def __init__(
        self, read: Callable[[], Credential], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._read = read
        self._clock = clock
        self._credential = read()
        self._due = clock() + REREAD_SECONDS

    async def current(self) -> Credential:
        if self._clock() >= self._due:
            self._reread()
        return self._credential

    async def refused(self, credential: Credential) -> bool:
        if credential == self._credential:
            self._reread()
        return credential != self._credential

    def _reread(self) -> None:
        self._due = self._clock() + REREAD_SECONDS
        try:
            self._credential = self._read()
        except ConfigError as error:
            logger.warning("credentials not renewed, keeping the last", extra={"error": str(error)})
