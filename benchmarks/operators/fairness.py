"""Whether two measurements can be compared: what was around them has to be the same."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass


class Unfair(Exception):
    """What was measured cannot be compared."""


@dataclass(frozen=True)
class Circumstances:
    """What there was before an operator started."""

    servers: str
    """Which processes the control plane consists of, with which flags: audit, rate limits, all."""
    definition: str
    """The CustomResourceDefinition of MPIJobs, as it is stored."""
    objects: Mapping[str, int]
    """How many objects the API server had of each kind that matters."""
    operators: int = 0
    """How many operators were running already."""


def digest(*parts: str) -> str:
    """Something short that differs if any part does."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def check(measured: Mapping[str, Circumstances]) -> None:
    """`Unfair` unless all were measured in the same circumstances, and alone."""
    for name, circumstances in measured.items():
        if circumstances.operators:
            raise Unfair(f"{name}: another operator was running. Run them one after the other.")
    (first, standard), *others = measured.items()
    for name, circumstances in others:
        if differences := _differences(standard, circumstances):
            raise Unfair(
                f"{first!r} and {name!r} cannot be compared: {'; '.join(differences)}."
                " Measure both on one API server, and clear it in between."
            )


def _differences(one: Circumstances, other: Circumstances) -> list[str]:
    pairs = ((key, value, asdict(other)[key]) for key, value in asdict(one).items())
    return [f"{key} was {a}, then {b}" for key, a, b in pairs if a != b]
