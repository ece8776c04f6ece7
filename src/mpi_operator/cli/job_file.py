"""A job from a YAML file, with the changes of the command line."""

import copy
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from mpi_operator.api.decode import decode_job, warnings
from mpi_operator.api.field_errors import FieldError, InvalidJob
from mpi_operator.api.types import API_VERSION, KIND, MPIJob, ReplicaType
from mpi_operator.kube.resources import Manifest

from .outcome import InvalidInput

NAMESPACE = "default"  # of every job that runs on this machine
# Short names of the fields that people change most.
SHORT = {
    "name": "metadata.name",
    "workers": "spec.mpiReplicaSpecs.Worker.replicas",
    "slots": "spec.slotsPerWorker",
    "implementation": "spec.mpiImplementation",
    "backoffLimit": "spec.runPolicy.backoffLimit",
    "deadline": "spec.runPolicy.activeDeadlineSeconds",
}


class LoadedJob(NamedTuple):
    """A valid job, and the directory that its programs start in."""

    manifest: Manifest
    job: MPIJob
    warnings: Sequence[FieldError]
    directory: Path


def load(path: Path, settings: Iterable[str], variables: Iterable[str]) -> LoadedJob:
    """The job in a file, or on standard input if that is `-`."""
    is_stdin = str(path) == "-"
    source = "standard input" if is_stdin else str(path)
    manifest = parse(sys.stdin.read(), source) if is_stdin else read(path)
    manifest = with_environment(with_settings(manifest, settings), variables)
    manifest["metadata"] = {**(manifest.get("metadata") or {}), "namespace": NAMESPACE}
    try:
        job = decode_job(manifest)
    except InvalidJob as invalid:
        lines = "\n".join(f"  {error}" for error in invalid.errors)
        raise InvalidInput(f"invalid {KIND} in {source}:\n{lines}") from invalid
    directory = Path.cwd() if is_stdin else path.absolute().parent
    return LoadedJob(manifest, job, warnings(manifest), directory)


def read(path: Path) -> Manifest:
    """The one job in a file."""
    try:
        text = path.read_text()
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"cannot read {path}: not a text file") from error
    return parse(text, str(path))


def parse(text: str, source: str) -> Manifest:
    """The one job in a text. Objects of other kinds are ignored."""
    try:
        documents = _documents(text)
    except yaml.YAMLError as error:
        raise InvalidInput(_syntax_error(error, source)) from error
    jobs = [each for each in documents if isinstance(each, dict) and each.get("kind") == KIND]
    match jobs:
        case []:
            raise InvalidInput(f"no {KIND} in {source}: one document needs `kind: {KIND}`")
        case [job]:
            return _of_this_version(job, source)
        case _:
            names = ", ".join(str((job.get("metadata") or {}).get("name")) for job in jobs)
            raise InvalidInput(f"more than one {KIND} in {source}: {names}")


def with_settings(job: Manifest, settings: Iterable[str]) -> Manifest:
    """A copy with fields set, each given as `workers=4` or `spec.slotsPerWorker=2`."""
    changed = copy.deepcopy(job)
    for setting in settings:
        path, separator, value = setting.partition("=")
        if not separator:
            raise _invalid(setting, "expected NAME=VALUE, such as workers=4")
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
    """Parse with the C parser if there is one; the Python parser has better error messages."""
    try:
        return list(yaml.load_all(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except yaml.YAMLError:
        return list(yaml.safe_load_all(text))


def _of_this_version(job: Manifest, source: str) -> Manifest:
    version = job.get("apiVersion")
    if version != API_VERSION:
        raise InvalidInput(
            f"unknown apiVersion in {source}: expected {API_VERSION}, got {version!r}"
        )
    return job


def _syntax_error(error: yaml.YAMLError, source: str) -> str:
    mark = getattr(error, "problem_mark", None)
    place = f"{source}:{mark.line + 1}:{mark.column + 1}" if mark else source
    return f"cannot parse {place}: {getattr(error, 'problem', None) or 'not YAML'}"


def _set(job: Manifest, path: str, value: Any, setting: str) -> None:
    *parents, last = path.split(".")
    if parents[:1] not in (["metadata"], ["spec"]):
        known = ", ".join(SHORT)
        raise _invalid(
            setting, f"unknown field; use {known}, or a path that starts with spec or metadata"
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
        raise _invalid(setting, f"{name} is a value and has no fields")
    return inner[name]


def _index(items: list[Any], text: str, setting: str) -> int:
    if text.isdecimal() and int(text) < len(items):
        return int(text)
    raise _invalid(setting, f"{text} is not an index of a list of length {len(items)}")


def _invalid(setting: str, why: str) -> InvalidInput:
    return InvalidInput(f"invalid --set {setting}: {why}")


def _variable(text: str) -> dict[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise InvalidInput(f"invalid --env {text}: expected NAME=VALUE")
    return {"name": name, "value": value}


def _first_container(job: Manifest, role: ReplicaType) -> Manifest | None:
    inner: Any = job
    for name in ("spec", "mpiReplicaSpecs", role.value, "template", "spec", "containers"):
        inner = inner.get(name) if isinstance(inner, dict) else None
    first = inner[0] if isinstance(inner, list) and inner else None
    return first if isinstance(first, dict) else None
