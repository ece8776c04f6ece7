"""What this machine has, and who has taken how much of it."""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from mpi_operator.kube.resources import Key, Manifest

from .fields import amount

GPU = "nvidia.com/gpu"
# Asked for by nobody who would be refused here: this machine has as much as it has.
_UNCOUNTED = ("ephemeral-storage",)
_WORDS = {"cpu": "CPUs", "memory": "memory", GPU: "GPUs"}


@dataclass(frozen=True)
class Machine:
    """The resources of a machine."""

    cpu: Fraction
    memory: Fraction
    gpus: tuple[str, ...] = ()

    @property
    def resources(self) -> dict[str, Fraction]:
        return {"cpu": self.cpu, "memory": self.memory, GPU: Fraction(len(self.gpus))}

    @property
    def texts(self) -> dict[str, str]:
        """The same as pods are told."""
        return {"cpu": str(self.cpu), "memory": str(int(self.memory))}


def this_machine(environment: Mapping[str, str] = os.environ) -> Machine:
    """What can be used here by this process."""
    usable = getattr(os, "sched_getaffinity", None)
    cpus = len(usable(0)) if usable else os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Machine(Fraction(cpus), Fraction(memory), visible_gpus(environment))


def visible_gpus(environment: Mapping[str, str], devices: Path = Path("/dev")) -> tuple[str, ...]:
    """The GPUs that a program of ours would see."""
    given = environment.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        return tuple(name.strip() for name in given.split(",") if name.strip() not in ("", "-1"))
    found = (re.fullmatch(r"nvidia(\d+)", entry.name) for entry in devices.glob("nvidia[0-9]*"))
    return tuple(str(number) for number in sorted(int(match[1]) for match in found if match))


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


@dataclass(frozen=True)
class Share:
    """What one pod has been given."""

    amounts: Mapping[str, Fraction]
    gpus: tuple[str, ...] = ()


@dataclass
class Ledger:
    """Who has what. With `oversubscribe`, CPUs and memory are not counted; GPUs always are."""

    machine: Machine
    oversubscribe: bool = False
    _shares: dict[Key, Share] = field(default_factory=dict)

    def take(self, key: Key, wanted: Mapping[str, Fraction]) -> Share | str:
        """A share for a pod, or a sentence that says why not."""
        if complaints := list(self._complaints(wanted)):
            return f"0/1 nodes are available: {', '.join(complaints)}"
        taken = {gpu for share in self._shares.values() for gpu in share.gpus}
        free = [gpu for gpu in self.machine.gpus if gpu not in taken]
        share = Share(wanted, tuple(free[: int(wanted.get(GPU, 0))]))
        self._shares[key] = share
        return share

    def give_back(self, key: Key) -> None:
        self._shares.pop(key, None)

    def _complaints(self, wanted: Mapping[str, Fraction]) -> Iterable[str]:
        there = self.machine.resources
        for name, size in wanted.items():
            if self.oversubscribe and name in ("cpu", "memory"):
                continue
            taken = sum(share.amounts.get(name, Fraction(0)) for share in self._shares.values())
            has = there.get(name, Fraction(0))
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
