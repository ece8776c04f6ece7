"""The source of a pinned Go module, for what is beside its programs: definitions and manifests."""

import json
import subprocess
from pathlib import Path
from typing import Any

import yaml

from devcluster import binaries
from devcluster.binaries import CannotBuild, Tool


def directory(tool: Tool) -> Path:
    """Where Go keeps the source of the module that a tool is built from."""
    command = ["go", "mod", "download", "-json", f"{tool.requirement}@{tool.version}"]
    try:
        answer = subprocess.run(
            command, cwd=tool.module_directory, check=True, capture_output=True, text=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise CannotBuild(
            f"The manifests of {tool.module} are in its Go module, but `{' '.join(command)}`"
            f" failed: {error}"
        ) from error
    return Path(json.loads(answer.stdout)["Dir"])


def kustomized(tool: Tool, folder: str) -> list[dict[str, Any]]:
    """The manifests that `kubectl kustomize` makes of a folder of that module."""
    kubectl = binaries.provide(["kubectl"])["kubectl"]
    printed = subprocess.run(
        [kubectl, "kustomize", directory(tool) / folder], check=True, capture_output=True, text=True
    ).stdout
    return list(yaml.load_all(printed, yaml.CSafeLoader))
