"""The rank of each line, which only `mpirun` knows: its own tags, in one form for every MPI."""

import re
from collections.abc import Sequence

# MPICH and Intel MPI tag every piece that a rank writes, even a line feed alone. So their tags must
# be recognizable within a line, and those of `-prepend-rank` are not.
_HYDRA = ("-prepend-pattern", "[,%r]<stdout>: ")
# The option that makes `mpirun` tag its lines.
OPTIONS = {"OpenMPI": ("--tag-output",), "MPICH": _HYDRA, "Intel": _HYDRA}
# The words that make the tags which are known here, ours and those of a user's own command.
_TAGGING = ("-prepend-rank", *(option[-1] for option in OPTIONS.values()))
# Open MPI: `[1,0]<stdout>: hi`; `-prepend-rank`: `[0] hi`.
_TAG = re.compile(rb"\[(?:[^\]\s]*,)?(\d+)\](?:<std(?:out|err|diag)>:)? ?")

# Within a line only this is sure to be a tag: programs, too, print `x[0] = 1`.
_BEFORE_TAG = re.compile(rb"(?=\[[^\[\]\s]*,\d+\]<std(?:out|err|diag)>:)")


def has_rank_tags(command: Sequence[str]) -> bool:
    """Whether a command makes mpirun tag its lines."""
    return any(word in _TAGGING for word in command)


def split_tag(printed: bytes) -> tuple[str, bytes]:
    """The rank of a line and the line without its tag; "" if it has none."""
    tag = _TAG.match(printed)
    return (tag[1].decode(), printed[tag.end() :]) if tag else ("", printed)


def is_tagged(printed: bytes) -> bool:
    """Whether a piece certainly begins with a tag, even if it continues a line."""
    return _BEFORE_TAG.match(printed) is not None


def split_ranks(printed: bytes) -> list[bytes]:
    """A piece, divided before each tag: a rank may print after another that ended no line."""
    return [part for part in _BEFORE_TAG.split(printed) if part] or [printed]


def without_tags(printed: bytes) -> list[bytes]:
    """What each rank printed in a line, without the tags."""
    said: dict[str, bytes] = {}
    for part in split_ranks(printed):
        rank, text = split_tag(part)
        said[rank] = said.get(rank, b"") + text
    return [*said.values()]
