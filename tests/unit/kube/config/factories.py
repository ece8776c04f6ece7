"""Kubeconfig files, plugins and clocks for tests."""

import json
import sys
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"


@dataclass
class Clock:
    """Time that passes when told to."""

    time: float = 1_000_000.0

    def __call__(self) -> float:
        return self.time


def b64(text: str) -> str:
    return b64encode(text.encode()).decode()


def make_kubeconfig(
    *, cluster: Any = None, user: Any = None, context: Any = None, **top: Any
) -> dict[str, Any]:
    """A valid kubeconfig with one of each, changed where it matters."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "dev",
        "clusters": [{"name": "c", "cluster": {"server": "https://c:6443"} | (cluster or {})}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "dev", "context": {"cluster": "c", "user": "u"} | (context or {})}],
    } | top


def write(path: Path, content: Any) -> Path:
    """The file, with YAML unless the content is text already."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def write_plugin(path: Path, body: str) -> Path:
    """A program in Python, which counts its runs in a file beside it."""
    counting = f"open({str(path) + '.runs'!r}, 'a').write('.')"
    path.write_text(f"#!{sys.executable} -S\nimport json, os, sys\n{counting}\n{body}\n")
    path.chmod(0o700)
    return path


def runs(plugin: Path) -> int:
    counted = Path(f"{plugin}.runs")
    return len(counted.read_text()) if counted.exists() else 0


def answer(version: str = V1, **status: Any) -> str:
    """The line of Python with which a plugin gives this answer."""
    text = json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})
    return f"print({text!r})"
