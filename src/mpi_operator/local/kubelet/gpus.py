"""The GPUs of this machine, and the variables that give some of them to a container.

A program sees the GPUs in CUDA_VISIBLE_DEVICES: by number or by UUID. Numbers mean something else
in a container that has only some of the machine's devices, and CUDA numbers GPUs in another order
than the driver; so UUIDs are preferred.
"""

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path

VARIABLES = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")

_LIST_SECONDS = 30.0  # the driver may have to be loaded first
_UUID = re.compile(r"\(UUID: ((GPU|MIG)-[^)\s]+)\)")


def visible(environment: Mapping[str, str], devices: Path = Path("/dev")) -> tuple[str, ...]:
    """The GPUs that a child of this process would see. May take a second."""
    given = environment.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        names = (name.strip() for name in given.split(","))
        return tuple(takewhile(lambda name: name not in ("", "-1"), names))  # as CUDA reads it
    return listed(_driver_list(environment)) or _numbered(devices)


def listed(text: str) -> tuple[str, ...]:
    """The GPUs that `nvidia-smi -L` lists. Of a divided GPU the parts are used, not the whole."""
    found: list[str] = []
    whole = ""
    for uuid, kind in _UUID.findall(text):
        if kind == "GPU":
            whole = uuid
        elif found[-1:] == [whole]:
            found.pop()
        found.append(uuid)
    return tuple(found)


def variables(devices: Sequence[str]) -> dict[str, str]:
    """The variables that show a program these GPUs and no others."""
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
