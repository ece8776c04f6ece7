"""Analyzes the requests of an operator."""

from collections.abc import Iterable, Mapping, Sequence

from devcluster.audit import Record


class Missing:
    """The number of objects that a user still has to create in a namespace, by resource."""

    def __init__(self, user: str, namespace: str, counts: Mapping[str, int]) -> None:
        self._where = (user, namespace)
        self._counts = dict(counts)

    def is_nothing_after(self, requests: Iterable[Record]) -> bool:
        """Whether these further requests created all missing objects."""
        for each in requests:
            if (each.user, each.namespace) == self._where and each.has_created(each.resource):
                self._counts[each.resource] = self._counts.get(each.resource, 0) - 1
        return all(count <= 0 for count in self._counts.values())


def beyond_objects(requests: Iterable[Record]) -> list[Record]:
    """The writes that neither create nor delete an object of a job.

    They are the cost of a job while it runs: its status, changes of its ConfigMap and its Job,
    events, and all rejected requests.
    """
    return [each for each in requests if not _creates_or_deletes(each)]


def _creates_or_deletes(request: Record) -> bool:
    if request.resource == "events" or request.code >= 300:
        return False
    return request.verb in ("create", "delete", "deletecollection") and not request.subresource


def span(requests: Sequence[Record]) -> float:
    """Seconds from the arrival of the first request to the last response."""
    return max(each.answered for each in requests) - min(each.received for each in requests)
