"""What the remote shell of a launcher has to tell of workers, in the launcher's last words."""

from dataclasses import dataclass

from mpi_operator.build.scripts import GAVE_UP, LOST, WENT_ON


@dataclass(frozen=True)
class LostContact:
    """That a session in a worker broke off while something ran there."""

    worker: str
    sentence: str


def gave_up(words: str) -> str:
    """The sentence about the first worker that was given up; empty where none was."""
    lines = (line.partition(GAVE_UP) for line in words.splitlines())
    found = (rest.strip() for _, told, rest in lines if told)
    return next((f"The launcher gave up on {rest}" for rest in found), "")


def lost_contacts(words: str) -> tuple[LostContact, ...]:
    """The workers that were lost last. What a launcher went on after is its own affair."""
    lost: list[LostContact] = []
    for line in words.splitlines():
        if line.startswith(WENT_ON):
            lost.clear()
        elif line.startswith(LOST):
            rest = line.removeprefix(LOST).strip()
            lost.append(LostContact(rest.partition(" ")[0], f"The launcher lost {rest}"))
    return tuple(lost)
