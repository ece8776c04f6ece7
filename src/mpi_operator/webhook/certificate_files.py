"""A certificate from files that something else renews, such as cert-manager.

The files are read again when they have changed. A pair that does not fit, because only one of the
two files has been replaced yet, is tried again.
"""

import asyncio
import logging
import ssl
from pathlib import Path
from typing import NoReturn

from . import certificates
from .metrics import WebhookMetrics
from .tls import LiveContext

logger = logging.getLogger(__name__)

_SECONDS = 5.0


class CertificateFiles:
    """`tls.crt` and `tls.key` of a directory."""

    def __init__(self, directory: Path, live: LiveContext, metrics: WebhookMetrics) -> None:
        self._directory = directory
        self._live = live
        self._metrics = metrics
        self._problem = ""

    async def run(self, seconds: float = _SECONDS) -> NoReturn:
        """Follow the files until cancelled."""
        while True:
            self.refresh()
            await asyncio.sleep(seconds)

    def refresh(self) -> None:
        """Serve what the files contain now; if they cannot be used, keep what there was."""
        try:
            certificate = (self._directory / "tls.crt").read_text("ascii")
            key = (self._directory / "tls.key").read_text("ascii")
            is_new = self._live.load(certificate, key)
            self._metrics.certificate_expires(certificates.expiry(certificate))
        except (OSError, ssl.SSLError, ValueError) as error:
            self._report(f"{type(error).__name__}: {getattr(error, 'strerror', '') or ''}")
            return
        self._problem = ""
        if is_new:
            logger.info("Serving a new certificate", extra={"directory": str(self._directory)})

    def _report(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            logger.warning(
                "Cannot use the certificate in files, retrying",
                extra={"directory": str(self._directory), "error": problem},
            )
