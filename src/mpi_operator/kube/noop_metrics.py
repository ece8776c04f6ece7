"""Metrics that do nothing, for programs without Prometheus."""

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:  # else prometheus_client would have to be installed and imported
    from .metrics import Metrics


class _Noop:
    """Accepts every call that a metric or a collection of metrics accepts."""

    def __getattr__(self, name: str) -> "_Noop":
        return self

    def __call__(self, *arguments: Any, **more: Any) -> "_Noop":
        return self


NOOP_METRICS = cast("Metrics", _Noop())
