"""Records what an informer reports, and checks that it is a possible history."""

from mpi_operator.kube.cache import Change
from mpi_operator.kube.objects import Object, is_newer
from mpi_operator.kube.resources import Key


class ChangeRecorder:
    """A handler that rebuilds the collection from changes alone."""

    def __init__(self) -> None:
        self.objects: dict[Key, Object] = {}
        self.count = 0

    def __call__(self, change: Change[Object]) -> None:
        known = change.new or change.old
        assert known is not None, "a change of nothing"
        key = known.metadata.key
        assert change.old is self.objects.get(key), f"{key}: changed from another object"
        if change.new is None:
            del self.objects[key]
        else:
            assert change.old is None or _goes_forward(change.old, change.new), f"{key}: seen twice"
            self.objects[key] = change.new
        self.count += 1

    def has_recorded(self, count: int) -> bool:
        return self.count >= count

    def versions(self) -> dict[str, str]:
        """The version of each object by name."""
        return {key.name: each.metadata.resource_version for key, each in self.objects.items()}


def _goes_forward(old: Object, new: Object) -> bool:
    return is_newer(new.metadata.resource_version, old.metadata.resource_version)
