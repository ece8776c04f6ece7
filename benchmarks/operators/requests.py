"""What the requests of an operator say about it."""

from collections.abc import Iterable, Mapping, Sequence

from devcluster.audit import Record


class Missing:
    """How many objects a user has still to create in a namespace, by resource."""

    def __init__(self, user: str, namespace: str, counts: Mapping[str, int]) -> None:
        self._where = (user, namespace)
        self._counts = dict(counts)

    def is_nothing_after(self, requests: Iterable[Record]) -> bool:
        """Whether all are there, now that these requests have been answered too."""
        for each in requests:
            if (each.user, each.namespace) == self._where and each.has_created(each.resource):
                self._counts[each.resource] = self._counts.get(each.resource, 0) - 1
        return all(count <= 0 for count in self._counts.values())


def beyond_objects(requests: Iterable[Record]) -> list[Record]:
    """Of these writes, those that neither create nor delete an object of a job.

    What is left is what a job costs while it lives: its status, changes of its ConfigMap and of its
    Job, events, and every attempt that was refused.
    """
    return [each for each in requests if not _makes_or_removes(each)]


def _makes_or_removes(request: Record) -> bool:
    if request.resource == "events" or request.code >= 300:
        return False
    return request.verb in ("create", "delete", "deletecollection") and not request.subresource


def span(requests: Sequence[Record]) -> float:
    """Seconds from the first that came to the last that was answered."""
    return max(each.answered for each in requests) - min(each.received for each in requests)
