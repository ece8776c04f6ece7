"""Logs an error that is retried: once for as long as it stays the same, with advice."""

import logging
from collections.abc import Mapping

from mpi_operator.kube import errors

logger = logging.getLogger(__name__)


class RepeatedErrorLog:
    """The last reported error of one task."""

    def __init__(self, message: str, advice: Mapping[type[errors.KubeError], str]) -> None:
        self._message = message
        self._advice = advice
        self._last = ""

    def report(self, error: errors.KubeError, **facts: object) -> None:
        """Log an error, unless it is the last one again."""
        if str(error) == self._last:
            return
        self._last = str(error)
        advice = next((text for kind, text in self._advice.items() if isinstance(error, kind)), "")
        more = {"advice": advice} if advice else {}
        logger.warning("%s, retrying", self._message, extra={**facts, "error": self._last, **more})

    def clear(self) -> None:
        """Report the next error, whatever it is."""
        self._last = ""
