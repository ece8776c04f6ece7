"""What the remote shell of a launcher has to tell of workers, in the launcher's last words."""

from dataclasses import dataclass

from mpi_operator.build.scripts import GAVE_UP, LOST, WENT_ON


@dataclass(frozen=True)
class LostContact:
    """That a worker could not be reached, or that a session in it broke off."""

    worker: str
    sentence: str


def gave_up(words: str) -> LostContact | None:
    """The first worker that was given up."""
    lines = (line.partition(GAVE_UP) for line in words.splitlines())
    found = (rest.strip() for _, told, rest in lines if told)
    return next((_contact("The launcher gave up on", rest) for rest in found), None)


def lost_contacts(words: str) -> tuple[LostContact, ...]:
    """The workers that were lost last. What a launcher went on after is its own affair."""
    lost: list[LostContact] = []
    for line in words.splitlines():
        if line.startswith(WENT_ON):
            lost.clear()
        elif line.startswith(LOST):
            lost.append(_contact("The launcher lost", line.removeprefix(LOST).strip()))
    return tuple(lost)


def _contact(what: str, rest: str) -> LostContact:
    return LostContact(rest.partition(" ")[0], f"{what} {rest}")
