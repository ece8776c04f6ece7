"""Metrics that nobody reads, for programs that have no use for Prometheus."""

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:  # or it would have to be installed, and loaded
    from .metrics import Metrics


class _Nothing:
    """Takes everything that a metric or a collection of metrics can be told."""

    def __getattr__(self, name: str) -> "_Nothing":
        return self

    def __call__(self, *arguments: Any, **more: Any) -> "_Nothing":
        return self


UNMEASURED = cast("Metrics", _Nothing())
