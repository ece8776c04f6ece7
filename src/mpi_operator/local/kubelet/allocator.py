"""Which pod has which resources of this machine, and which resources other runs hold.

Runs that start together must not each get a part of what they need, and then wait for each other.
So the first pod of a group gets nothing until there is room for the whole group, and until all of
its pods have started the group holds what it asked for.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from fractions import Fraction
from typing import Protocol

import msgspec

from mpi_operator.kube.resources import Key

from .capacity import GPU, Machine, shown, unit_of

_OVERSUBSCRIBED = ("cpu", "memory")
_NONE = Fraction(0)


class Holding(msgspec.Struct, frozen=True):
    """What a run holds, and for which groups of pods."""

    amounts: Mapping[str, Fraction]
    gpus: Sequence[str] = ()
    groups: Sequence[str] = ()
    run: str = ""


class Ledger(Protocol):
    """What the runs of this machine hold."""

    def exclusive(self) -> AbstractContextManager[None]:
        """Keep the others from changing it until the block ends."""
        ...

    def others(self) -> Sequence[Holding]: ...

    def write(self, holding: Holding) -> None: ...


class NoOtherRuns:
    """The ledger of a machine with one run."""

    def exclusive(self) -> AbstractContextManager[None]:
        return nullcontext()

    def others(self) -> Sequence[Holding]:
        return ()

    def write(self, holding: Holding) -> None:
        """There is no reader."""


class Group(msgspec.Struct, frozen=True):
    """Pods that need each other, and what all of them request."""

    name: str
    amounts: Mapping[str, Fraction]


class Allocation(msgspec.Struct, frozen=True):
    """What one pod has been given."""

    amounts: Mapping[str, Fraction]
    gpus: tuple[str, ...] = ()
    group: str = ""


class Allocator(msgspec.Struct):
    """Gives resources to pods. `oversubscribe` ignores CPUs and memory, never GPUs."""

    machine: Machine
    oversubscribe: bool = False
    ledger: Ledger = msgspec.field(default_factory=NoOtherRuns)
    _allocations: dict[Key, Allocation] = msgspec.field(default_factory=dict)
    _starting: dict[str, Group] = msgspec.field(default_factory=dict)
    """The groups of which not all pods have been started."""

    def allocate(
        self, key: Key, wanted: Mapping[str, Fraction], group: Group | None = None
    ) -> Allocation | str:
        """Resources for a pod, or why it does not fit, as a scheduler would say it.

        A pod that requests nothing waits for the others of its group: a launcher would not find its
        workers, and fail.
        """
        if not wanted and (group is None or not group.amounts):
            return Allocation({})
        with self.ledger.exclusive():
            others = self.ledger.others()
            is_first = group is not None and not self._has(group.name)
            starting = {**self._starting, group.name: group} if group and is_first else None
            given = Allocation(wanted, group=group.name if group else "")
            if shortages := list(self._shortages(given, starting or self._starting, others)):
                return f"0/1 nodes are available: {', '.join(shortages)}"
            free = self._free_gpus(int(wanted.get(GPU, 0)), others)
            given = msgspec.structs.replace(given, gpus=free)
            self._starting = starting or self._starting
            self._allocations[key] = given
            self._end_start(given.group)
            self._write()
        return given

    def release(self, key: Key) -> None:
        released = self._allocations.pop(key, None)
        if released is None:
            return
        if not self._has(released.group):
            self._starting.pop(released.group, None)
        with self.ledger.exclusive():
            self._write()

    def _has(self, group: str) -> bool:
        return any(each.group == group for each in self._allocations.values())

    def _end_start(self, name: str) -> None:
        """Hold only what pods use, once all pods of a group have started."""
        group = self._starting.get(name)
        pods = [each for each in self._allocations.values() if each.group == name]
        if group and all(_sum(pods, each) >= size for each, size in group.amounts.items()):
            del self._starting[name]

    def _write(self) -> None:
        used = self._allocations.values()
        names = dict.fromkeys(name for each in used for name in each.amounts)
        names |= dict.fromkeys(name for each in self._starting.values() for name in each.amounts)
        self.ledger.write(
            Holding(
                {name: _held(name, used, self._starting) for name in names},
                [gpu for each in used for gpu in each.gpus],
                sorted({each.group for each in used if each.group}),
            )
        )

    def _free_gpus(self, count: int, others: Sequence[Holding]) -> tuple[str, ...]:
        if not count:
            return ()
        used = {gpu for each in self._allocations.values() for gpu in each.gpus}
        used.update(gpu for each in others for gpu in each.gpus)
        return tuple(gpu for gpu in self.machine.gpus() if gpu not in used)[:count]

    def _shortages(
        self, given: Allocation, starting: Mapping[str, Group], others: Sequence[Holding]
    ) -> Iterator[str]:
        now = self._allocations.values()
        group = starting.get(given.group)
        names = dict.fromkeys((*given.amounts, *(group.amounts if group else ())))
        for name in names:
            if self.oversubscribe and name in _OVERSUBSCRIBED:
                continue
            before = _held(name, now, self._starting)
            wanted = _held(name, [*now, given], starting) - before
            elsewhere = sum((each.amounts.get(name, _NONE) for each in others), _NONE)
            total = self.machine.amount(name)
            if wanted > 0 and wanted + before + elsewhere > total:
                subject = (
                    "the pod requests" if wanted == given.amounts.get(name) else "the job needs"
                )
                used = _users(name, before, others)
                yield f"Insufficient {name}: {subject} {_of_total(name, wanted, total)}{used}"


def _held(name: str, pods: Iterable[Allocation], starting: Mapping[str, Group]) -> Fraction:
    """How much of a resource pods use, and groups that are being started hold."""
    by_group: dict[str, Fraction] = {}
    for each in pods:
        by_group[each.group] = by_group.get(each.group, _NONE) + each.amounts.get(name, _NONE)
    for group in starting.values():
        by_group[group.name] = max(by_group.get(group.name, _NONE), group.amounts.get(name, _NONE))
    return sum(by_group.values(), _NONE)


def _sum(pods: Iterable[Allocation], name: str) -> Fraction:
    return sum((each.amounts.get(name, _NONE) for each in pods), _NONE)


def _of_total(name: str, wanted: Fraction, total: Fraction) -> str:
    unit = unit_of(name, total)
    return f"{shown(name, wanted)}, this machine has {shown(name, total)} {unit}"


def _users(name: str, used: Fraction, others: Iterable[Holding]) -> str:
    """Who holds a resource, for messages."""
    parts = [f"{shown(name, used)} in use"] if used else []
    parts += [
        f"{shown(name, each.amounts[name])} held by {', '.join(each.groups) or 'a job'}"
        f" in run {each.run}"
        for each in others
        if each.amounts.get(name)
    ]
    return f" ({', '.join(parts)})" if parts else ""
