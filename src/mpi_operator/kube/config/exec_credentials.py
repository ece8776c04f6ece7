"""Credentials from an exec plugin: when to run it, and what to do when it fails."""

import logging
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from mpi_operator.kube.errors import ConfigError

from .config import Credential
from .exec_plugin import Answer, ExecPlugin, parse_answer, printable
from .headers import Headers
from .process import Finished, run
from .single_flight import SingleFlight

logger = logging.getLogger(__name__)

TIMEOUT_SECONDS = 60.0
# Time to find a password, or to log in with a browser.
INTERACTIVE_TIMEOUT_SECONDS = 600.0
# Renew a minute before expiry, but not before 80 % of the remaining time has passed: otherwise a
# plugin that returns a cached token in its last minute would run for every request.
LEEWAY_SECONDS = 60.0
LEEWAY_SHARE = 0.2
RETRY_SECONDS = 10.0


@dataclass(frozen=True)
class _Held:
    credential: Credential
    renew_at: float
    expires_at: float


class ExecCredentials:
    """The last answer of a plugin, which runs again before that expires and after a 401.

    However many requests wait, the plugin runs once.
    """

    def __init__(
        self,
        plugin: ExecPlugin,
        acting_as: Headers = (),
        *,
        now: Callable[[], float] = time.time,
        timeout: float | None = None,
    ) -> None:
        self._plugin = plugin
        self._acting_as = acting_as
        self._now = now
        default = INTERACTIVE_TIMEOUT_SECONDS if plugin.interactive else TIMEOUT_SECONDS
        self._timeout = default if timeout is None else timeout
        self._held: _Held | None = None
        self._renew = SingleFlight(self._ask)

    async def current(self) -> Credential:
        held = self._held
        if held is None:
            return (await self._renew()).credential
        if self._now() >= held.renew_at:
            return (await self._renewed(held)).credential
        return held.credential

    async def refused(self, credential: Credential) -> bool:
        held = self._held
        if held is None or held.credential == credential:
            held = await self._renew()
        return held.credential != credential

    async def _renewed(self, held: _Held) -> _Held:
        """A new answer, or the old one if the plugin fails before that has expired."""
        try:
            return await self._renew()
        except ConfigError as error:
            if self._now() >= held.expires_at:
                raise
            logger.warning(
                "Could not renew credentials, using the previous ones", extra={"error": str(error)}
            )
            self._held = replace(held, renew_at=self._now() + RETRY_SECONDS)
            return held

    async def _ask(self) -> _Held:
        answer = parse_answer(self._plugin, await output_of(self._plugin, timeout=self._timeout))
        credential = Credential(answer.authorization + self._acting_as, answer.certificate)
        self._held = _Held(credential, *_times(answer, self._now()))
        return self._held


def _times(answer: Answer, now: float) -> tuple[float, float]:
    """When to renew, and when the answer expires."""
    if answer.expires_at is None:
        return float("inf"), float("inf")
    leeway = min(LEEWAY_SECONDS, LEEWAY_SHARE * max(0.0, answer.expires_at - now))
    return answer.expires_at - leeway, answer.expires_at


async def output_of(plugin: ExecPlugin, *, timeout: float) -> bytes:
    """Run the plugin and return what it printed; ConfigError if it failed."""
    executable = shutil.which(plugin.command)
    if executable is None:
        raise ConfigError(_missing(plugin))
    try:
        finished = await run(
            executable,
            [plugin.command, *plugin.args],
            environment={**os.environ, **plugin.environment},
            terminal=plugin.interactive,
            timeout=timeout,
        )
    except TimeoutError:
        raise ConfigError(
            f"{plugin.where}: {plugin.command} did not finish within {timeout:g}s; "
            "run it in a terminal to see what it waits for"
        ) from None
    except (OSError, ValueError) as error:
        # Not quoted: arguments may contain a password, and ValueError is about them.
        reason = error.strerror if isinstance(error, OSError) else "an argument is not valid"
        raise ConfigError(f"{plugin.where}: cannot run {plugin.command}: {reason}") from None
    if finished.code != 0:
        raise ConfigError(_failed(plugin, finished))
    return finished.output


def _missing(plugin: ExecPlugin) -> str:
    hint = f"\n{plugin.install_hint}" if plugin.install_hint else ""
    return f"{plugin.where}: {plugin.command} not found; install it, or correct `command`{hint}"


def _failed(plugin: ExecPlugin, finished: Finished) -> str:
    said = printable(finished.errors.decode(errors="replace")).strip() or "it gave no reason"
    return f"{plugin.where}: {plugin.command} failed with exit code {finished.code}: {said}"
