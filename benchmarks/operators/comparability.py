"""Checks that measurements are comparable: made in the same environment."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass


class NotComparable(Exception):
    """The measurements are not comparable."""


@dataclass(frozen=True)
class Environment:
    """The state of the testbed before an operator started."""

    servers: str
    """A digest of the processes of the control plane with all their flags."""
    crd: str
    """A digest of the stored CRD."""
    objects: Mapping[str, int]
    """The number of objects of each relevant kind."""
    operators: int = 0
    """The number of operators that were already running."""


def digest(*parts: str) -> str:
    """A short digest of all parts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def check(measured: Mapping[str, Environment]) -> None:
    """Raise NotComparable unless all were measured in the same environment, and alone."""
    for name, environment in measured.items():
        if environment.operators:
            raise NotComparable(f"{name}: another operator was running. Run one at a time.")
    (first, standard), *others = measured.items()
    for name, environment in others:
        if differences := _differences(standard, environment):
            raise NotComparable(
                f"{first!r} and {name!r} cannot be compared: {'; '.join(differences)}."
                " Measure both on one API server, and clean it up in between."
            )


def _differences(one: Environment, other: Environment) -> list[str]:
    pairs = ((key, value, asdict(other)[key]) for key, value in asdict(one).items())
    return [f"{key} was {a}, then {b}" for key, a, b in pairs if a != b]
