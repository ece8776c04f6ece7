"""Which GPUs this machine has, and how a container is told which of them are its own.

A program sees the GPUs that CUDA_VISIBLE_DEVICES names: by number, or by an identity that does not
depend on who counts. Numbers mean something else in a container that has only some of the machine's
devices, and CUDA does not count as the driver does; so identities are preferred.
"""

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path

VARIABLES = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")

_LIST_SECONDS = 30.0  # a driver that nobody else uses is loaded first
_IDENTITY = re.compile(r"\(UUID: ((GPU|MIG)-[^)\s]+)\)")


def visible(environment: Mapping[str, str], devices: Path = Path("/dev")) -> tuple[str, ...]:
    """The GPUs that a program of ours would see. May take a second."""
    given = environment.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        names = (name.strip() for name in given.split(","))
        return tuple(takewhile(lambda name: name not in ("", "-1"), names))  # as CUDA reads it
    return listed(_driver_list(environment)) or _numbered(devices)


def listed(text: str) -> tuple[str, ...]:
    """The GPUs that `nvidia-smi -L` tells of. One that is divided is not used, its parts are."""
    found: list[str] = []
    whole = ""
    for identity, kind in _IDENTITY.findall(text):
        if kind == "GPU":
            whole = identity
        elif found[-1:] == [whole]:
            found.pop()
        found.append(identity)
    return tuple(found)


def variables(devices: Sequence[str]) -> dict[str, str]:
    """What lets a program see its GPUs and no others."""
    return dict.fromkeys(VARIABLES, ",".join(devices))


def _driver_list(environment: Mapping[str, str]) -> str:
    program = shutil.which("nvidia-smi", path=environment.get("PATH"))
    if program is None:
        return ""
    try:
        answer = subprocess.run(
            [program, "-L"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LIST_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout


def _numbered(devices: Path) -> tuple[str, ...]:
    found = (re.fullmatch(r"nvidia(\d+)", entry.name) for entry in devices.glob("nvidia[0-9]*"))
    return tuple(str(number) for number in sorted(int(match[1]) for match in found if match))
