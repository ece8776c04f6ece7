"""That the remote shell of a launcher gave up on a worker, as the launcher's last words tell."""

from mpi_operator.build.scripts import GAVE_UP


def gave_up(words: str) -> str:
    """The sentence about the first worker that was given up; empty where none was."""
    lines = (line.partition(GAVE_UP) for line in words.splitlines())
    found = (rest.strip() for _, told, rest in lines if told)
    return next((f"The launcher gave up on {rest}" for rest in found), "")
