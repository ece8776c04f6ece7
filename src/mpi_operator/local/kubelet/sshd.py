"""Workers that only run an sshd: here nobody connects to one, so they just wait.

Images start it as `/usr/sbin/sshd -De`, or at the end of a small script. A machine without root
cannot, and need not: the agent (`transport`) starts processes in a pod without asking it.
"""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

_SHELLS = ("sh", "bash", "dash", "ash", "zsh", "ksh")
_SSHD = re.compile(r"(?<![\w./-])(?:/usr/sbin/|/usr/bin/|/usr/local/sbin/|/sbin/)?sshd(?![\w./-])")


def is_sshd(argv: Sequence[str]) -> bool:
    """Whether a command line is an sshd and nothing else."""
    return bool(argv) and PurePosixPath(argv[0]).name == "sshd"


def without_sshd(argv: Sequence[str], stand_in: str) -> list[str]:
    """A command line whose shell script calls a stand-in where it would call sshd."""
    if len(argv) < 3 or PurePosixPath(argv[0]).name not in _SHELLS:
        return list(argv)
    words = list(argv)
    for index, word in enumerate(words[1:-1], start=1):
        if re.fullmatch(r"-[a-z]*c[a-z]*", word):
            words[index + 1] = _SSHD.sub(stand_in, words[index + 1])
            break
    return words
