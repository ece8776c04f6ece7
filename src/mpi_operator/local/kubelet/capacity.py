"""The resources of this machine, and how much of them a pod requests."""

import os
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache, partial

import msgspec

from mpi_operator.kube.resources import Manifest

from . import gpus
from .downward_api import quantity

GPU = "nvidia.com/gpu"
# Requests for these are ignored: no pod could be refused for a good reason.
_UNLIMITED = ("ephemeral-storage",)
_UNITS = {"cpu": ("CPU", "CPUs"), "memory": ("memory", "memory"), GPU: ("GPU", "GPUs")}


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


def unit_of(name: str, size: Fraction) -> str:
    """What an amount of a resource is counted in."""
    return _UNITS.get(name, (name, name))[size != 1]


def shown(name: str, size: Fraction) -> str:
    """An amount of a resource for messages."""
    if name == "memory":
        return f"{float(size) / 2**30:.1f}Gi"
    return str(size) if size.denominator == 1 else f"{float(size):g}"
