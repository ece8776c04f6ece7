"""The resources of this machine, and which pod has which of them."""

import os
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import cache, partial

import msgspec

from mpi_operator.kube.resources import Key, Manifest

from . import gpus
from .downward_api import quantity

GPU = "nvidia.com/gpu"
# Requests for these are ignored: no pod could be refused for a good reason.
_UNLIMITED = ("ephemeral-storage",)
_UNITS = {"cpu": "CPUs", "memory": "memory", GPU: "GPUs"}


class Machine(msgspec.Struct, frozen=True):
    """The resources of a machine."""

    cpu: Fraction
    memory: Fraction
    gpus: Callable[[], tuple[str, ...]] = tuple
    """The GPUs; a function, because listing them takes time and few jobs need any."""

    def amount(self, resource: str) -> Fraction:
        """How much of a resource there is."""
        if resource == GPU:
            return Fraction(len(self.gpus()))
        return {"cpu": self.cpu, "memory": self.memory}.get(resource, Fraction(0))

    @property
    def quantities(self) -> dict[str, str]:
        """CPU and memory as Kubernetes writes them."""
        return {"cpu": str(self.cpu), "memory": str(int(self.memory))}


def this_machine(environment: Mapping[str, str] = os.environ) -> Machine:
    """The resources that this process can use."""
    usable = getattr(os, "sched_getaffinity", None)
    cpus = len(usable(0)) if usable else os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Machine(Fraction(cpus), Fraction(memory), cache(partial(gpus.visible, environment)))


def requested(pod: Manifest) -> dict[str, Fraction]:
    """What a pod requests: all containers together, or one init container if that is more."""
    total: dict[str, Fraction] = {}
    for container in pod["spec"]["containers"]:
        for name, size in _of_container(container).items():
            total[name] = total.get(name, Fraction(0)) + size
    for container in pod["spec"].get("initContainers") or ():
        for name, size in _of_container(container).items():
            total[name] = max(total.get(name, Fraction(0)), size)
    return {name: size for name, size in total.items() if size and name not in _UNLIMITED}


def gpus_of(container: Manifest) -> int:
    """How many GPUs a container requests."""
    return int(_of_container(container).get(GPU, 0))


def _of_container(container: Manifest) -> dict[str, Fraction]:
    resources = container.get("resources") or {}
    given = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: quantity(size) for name, size in given.items()}


class Allocation(msgspec.Struct, frozen=True):
    """What one pod has been given."""

    amounts: Mapping[str, Fraction]
    gpus: tuple[str, ...] = ()


class Allocator(msgspec.Struct):
    """Gives resources to pods. `oversubscribe` ignores CPUs and memory, never GPUs."""

    machine: Machine
    oversubscribe: bool = False
    _allocations: dict[Key, Allocation] = msgspec.field(default_factory=dict)

    def allocate(self, key: Key, wanted: Mapping[str, Fraction]) -> Allocation | str:
        """Resources for a pod, or why it does not fit, as a scheduler would say it."""
        if shortages := list(self._shortages(wanted)):
            return f"0/1 nodes are available: {', '.join(shortages)}"
        allocation = Allocation(wanted, self._free_gpus(int(wanted.get(GPU, 0))))
        self._allocations[key] = allocation
        return allocation

    def release(self, key: Key) -> None:
        self._allocations.pop(key, None)

    def _free_gpus(self, count: int) -> tuple[str, ...]:
        if not count:
            return ()
        used = {gpu for each in self._allocations.values() for gpu in each.gpus}
        return tuple(gpu for gpu in self.machine.gpus() if gpu not in used)[:count]

    def _shortages(self, wanted: Mapping[str, Fraction]) -> Iterator[str]:
        for name, size in wanted.items():
            if self.oversubscribe and name in ("cpu", "memory"):
                continue
            used = sum(each.amounts.get(name, Fraction(0)) for each in self._allocations.values())
            total = self.machine.amount(name)
            if size + used > total:
                yield shortage(name, size, Fraction(used), total)


def shortage(name: str, wanted: Fraction, used: Fraction, total: Fraction) -> str:
    """Say that a pod requests more of a resource than is free."""
    in_use = f" ({shown(name, used)} in use)" if used else ""
    return (
        f"Insufficient {name}: the pod requests {shown(name, wanted)},"
        f" this machine has {shown(name, total)} {unit_of(name)}{in_use}"
    )


def unit_of(name: str) -> str:
    """What a resource is counted in."""
    return _UNITS.get(name, name)


def shown(name: str, size: Fraction) -> str:
    """An amount of a resource for messages."""
    if name == "memory":
        return f"{float(size) / 2**30:.1f}Gi"
    return str(size) if size.denominator == 1 else f"{float(size):g}"
