"""A job from a YAML file, with what the command line says about it laid over."""

import copy
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from mpi_operator.api.types import API_VERSION, KIND, ReplicaType
from mpi_operator.kube.resources import Manifest

# Short names for what people change most.
SHORT = {
    "name": "metadata.name",
    "workers": "spec.mpiReplicaSpecs.Worker.replicas",
    "slots": "spec.slotsPerWorker",
    "implementation": "spec.mpiImplementation",
    "backoffLimit": "spec.runPolicy.backoffLimit",
    "deadline": "spec.runPolicy.activeDeadlineSeconds",
}


class UnusableFile(Exception):
    """A file that is no job, with a sentence that says why and where."""


def read(path: Path) -> Manifest:
    """The one job in a file; `-` is not a file name here, the caller opens stdin."""
    try:
        text = path.read_text()
    except OSError as error:
        raise UnusableFile(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UnusableFile(f"{path}: is not a text file") from error
    return parse(text, str(path))


def parse(text: str, name: str) -> Manifest:
    """The one job in a text. Objects of other kinds beside it are not for us."""
    try:
        documents = _documents(text)
    except yaml.YAMLError as error:
        raise UnusableFile(f"{name}: {_where(error)}") from error
    jobs = [each for each in documents if isinstance(each, dict) and each.get("kind") == KIND]
    match jobs:
        case []:
            raise UnusableFile(f"{name}: there is no {KIND} in it")
        case [job]:
            return _known(job, name)
        case _:
            names = ", ".join(str((job.get("metadata") or {}).get("name")) for job in jobs)
            raise UnusableFile(f"{name}: there is more than one {KIND} in it: {names}")


def with_settings(job: Manifest, settings: Iterable[str]) -> Manifest:
    """A copy with fields set, each given as `workers=4` or `spec.slotsPerWorker=2`."""
    changed = copy.deepcopy(job)
    for setting in settings:
        path, separator, value = setting.partition("=")
        if not separator:
            raise UnusableFile(f"--set {setting}: expected NAME=VALUE, such as workers=4")
        _set(changed, SHORT.get(path, path), yaml.safe_load(value), setting)
    return changed


def with_environment(job: Manifest, variables: Iterable[str]) -> Manifest:
    """A copy whose first containers have these variables, each given as `NAME=VALUE`."""
    given = [_variable(each) for each in variables]
    changed = copy.deepcopy(job)
    for role in ReplicaType:
        container = _first_container(changed, role)
        if container is not None and given:
            names = {each["name"] for each in given}
            kept = [each for each in container.get("env") or () if each.get("name") not in names]
            container["env"] = [*kept, *given]
    return changed


def _documents(text: str) -> list[Any]:
    """What is in a text, by the fast parser if there is one; the other one complains better."""
    try:
        return list(yaml.load_all(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except yaml.YAMLError:
        return list(yaml.safe_load_all(text))


def _known(job: Manifest, name: str) -> Manifest:
    if job.get("apiVersion") != API_VERSION:
        raise UnusableFile(
            f"{name}: apiVersion: expected {API_VERSION}, got {job.get('apiVersion')!r}"
        )
    return job


def _where(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "is not YAML"
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark else str(problem)


def _set(job: Manifest, path: str, value: Any, setting: str) -> None:
    *parents, last = path.split(".")
    if parents[:1] not in (["metadata"], ["spec"]):
        known = ", ".join(SHORT)
        raise UnusableFile(
            f"--set {setting}: there is no such field; name one of {known}, or a path that begins "
            "with spec or metadata"
        )
    inner: Any = job
    for name in parents:
        inner = _step(inner, name, setting)
    if isinstance(inner, list):
        inner[_index(inner, last, setting)] = value
    else:
        inner[last] = value


def _step(inner: Any, name: str, setting: str) -> Any:
    if isinstance(inner, list):
        return inner[_index(inner, name, setting)]
    if inner.get(name) is None:
        inner[name] = {}
    if not isinstance(inner[name], dict | list):
        raise UnusableFile(f"--set {setting}: {name} is a value, there is nothing below it")
    return inner[name]


def _index(items: list[Any], text: str, setting: str) -> int:
    if text.isdecimal() and int(text) < len(items):
        return int(text)
    raise UnusableFile(f"--set {setting}: {text} is none of the {len(items)} items of the list")


def _variable(text: str) -> dict[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise UnusableFile(f"--env {text}: expected NAME=VALUE")
    return {"name": name, "value": value}


def _first_container(job: Manifest, role: ReplicaType) -> Manifest | None:
    inner: Any = job
    for name in ("spec", "mpiReplicaSpecs", role.value, "template", "spec", "containers"):
        inner = inner.get(name) if isinstance(inner, dict) else None
    first = inner[0] if isinstance(inner, list) and inner else None
    return first if isinstance(first, dict) else None
