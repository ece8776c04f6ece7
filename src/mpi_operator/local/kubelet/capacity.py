"""What this machine has, and who has taken how much of it."""

import os
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import cache, partial

import msgspec

from mpi_operator.kube.resources import Key, Manifest

from . import gpus
from .downward_api import amount

GPU = "nvidia.com/gpu"
# Asked for by nobody who would be refused here: this machine has as much as it has.
_UNCOUNTED = ("ephemeral-storage",)
_WORDS = {"cpu": "CPUs", "memory": "memory", GPU: "GPUs"}


class Machine(msgspec.Struct, frozen=True):
    """The resources of a machine."""

    cpu: Fraction
    memory: Fraction
    gpus: Callable[[], tuple[str, ...]] = tuple
    """Those there are; a function, for to find out takes time and few jobs need any."""

    def amount(self, resource: str) -> Fraction:
        """How much of a resource there is."""
        if resource == GPU:
            return Fraction(len(self.gpus()))
        return {"cpu": self.cpu, "memory": self.memory}.get(resource, Fraction(0))

    @property
    def texts(self) -> dict[str, str]:
        """The same as pods are told."""
        return {"cpu": str(self.cpu), "memory": str(int(self.memory))}


def this_machine(environment: Mapping[str, str] = os.environ) -> Machine:
    """What can be used here by this process."""
    usable = getattr(os, "sched_getaffinity", None)
    cpus = len(usable(0)) if usable else os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Machine(Fraction(cpus), Fraction(memory), cache(partial(gpus.visible, environment)))


def requested(pod: Manifest) -> dict[str, Fraction]:
    """What a pod asks for: all containers together, or one init container if that is more."""
    total: dict[str, Fraction] = {}
    for container in pod["spec"]["containers"]:
        for name, size in _of_container(container).items():
            total[name] = total.get(name, Fraction(0)) + size
    for container in pod["spec"].get("initContainers") or ():
        for name, size in _of_container(container).items():
            total[name] = max(total.get(name, Fraction(0)), size)
    return {name: size for name, size in total.items() if size and name not in _UNCOUNTED}


def gpus_of(container: Manifest) -> int:
    """How many GPUs a container asks for."""
    return int(_of_container(container).get(GPU, 0))


def _of_container(container: Manifest) -> dict[str, Fraction]:
    resources = container.get("resources") or {}
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: amount(size) for name, size in asked.items()}


class Share(msgspec.Struct, frozen=True):
    """What one pod has been given."""

    amounts: Mapping[str, Fraction]
    gpus: tuple[str, ...] = ()


class Ledger(msgspec.Struct):
    """Who has what. With `oversubscribe`, CPUs and memory are not counted; GPUs always are."""

    machine: Machine
    oversubscribe: bool = False
    _shares: dict[Key, Share] = msgspec.field(default_factory=dict)

    def take(self, key: Key, wanted: Mapping[str, Fraction]) -> Share | str:
        """A share for a pod, or a sentence that says why not."""
        if complaints := list(self._complaints(wanted)):
            return f"0/1 nodes are available: {', '.join(complaints)}"
        share = Share(wanted, self._free_gpus(int(wanted.get(GPU, 0))))
        self._shares[key] = share
        return share

    def _free_gpus(self, count: int) -> tuple[str, ...]:
        if not count:
            return ()
        taken = {gpu for share in self._shares.values() for gpu in share.gpus}
        return tuple(gpu for gpu in self.machine.gpus() if gpu not in taken)[:count]

    def give_back(self, key: Key) -> None:
        self._shares.pop(key, None)

    def _complaints(self, wanted: Mapping[str, Fraction]) -> Iterable[str]:
        for name, size in wanted.items():
            if self.oversubscribe and name in ("cpu", "memory"):
                continue
            taken = sum(share.amounts.get(name, Fraction(0)) for share in self._shares.values())
            has = self.machine.amount(name)
            if size + taken > has:
                yield _complaint(name, size, Fraction(taken), has)


def _complaint(name: str, wanted: Fraction, taken: Fraction, has: Fraction) -> str:
    others = f", of which {_shown(name, taken)} are taken" if taken else ""
    word = _WORDS.get(name, name)
    return (
        f"Insufficient {name}: the pod asks for {_shown(name, wanted)},"
        f" and this machine has {_shown(name, has)} {word}{others}"
    )


def _shown(name: str, size: Fraction) -> str:
    if name == "memory":
        return f"{float(size) / 2**30:.1f}Gi"
    return str(size) if size.denominator == 1 else f"{float(size):g}"
