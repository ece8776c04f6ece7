"""What an informer told, and whether that is a possible history."""

from mpi_operator.kube.cache import Change
from mpi_operator.kube.objects import Object, is_newer
from mpi_operator.kube.resources import Key


class Diary:
    """A handler that keeps a copy of the collection from changes alone."""

    def __init__(self) -> None:
        self.objects: dict[Key, Object] = {}
        self.told = 0

    def __call__(self, change: Change[Object]) -> None:
        known = change.new or change.old
        assert known is not None, "a change of nothing"
        key = known.metadata.key
        assert change.old is self.objects.get(key), f"{key}: told of a change to something else"
        if change.new is None:
            del self.objects[key]
        else:
            assert change.old is None or _goes_forward(change.old, change.new), f"{key}: seen twice"
            self.objects[key] = change.new
        self.told += 1

    def has_told(self, count: int) -> bool:
        return self.told >= count

    def versions(self) -> dict[str, str]:
        """The version of each object by name."""
        return {key.name: each.metadata.resource_version for key, each in self.objects.items()}


def _goes_forward(old: Object, new: Object) -> bool:
    return is_newer(new.metadata.resource_version, old.metadata.resource_version)
