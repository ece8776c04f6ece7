"""What the pods of a job refer to, and which of it does not exist: pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from mpi_operator.api import names
from mpi_operator.api.types import MPIJob
from mpi_operator.cli.command_errors import InvalidInput
from mpi_operator.cli.plain_text import printable
from mpi_operator.kube.resources import (
    CONFIG_MAPS,
    PERSISTENT_VOLUME_CLAIMS,
    SECRETS,
    Manifest,
    Resource,
)

from .config_objects import keys_of

# The options that provide what is missing.
_OPTIONS = {
    CONFIG_MAPS: "--configmap {}=DIR",
    SECRETS: "--secret-file {}=PATH",
    PERSISTENT_VOLUME_CLAIMS: "--volume {}=DIR",
}
_KEY_OPTIONS = {CONFIG_MAPS: "--configmap {}:{}=FILE", SECRETS: "--secret-file {}:{}=FILE"}


class Reference(NamedTuple):
    """An object that a pod cannot start without, and the key of it if there is one."""

    resource: Resource
    name: str
    key: str = ""


class Missing(NamedTuple):
    """A reference to something that does not exist, and the pods that need it."""

    reference: Reference
    keys: frozenset[str] | None = None
    """What the object has instead of the key; None if there is no object."""
    users: str = ""

    def __str__(self) -> str:
        kind, name, key = self.reference.resource.kind, self.reference.name, self.reference.key
        if self.keys is None:
            return f"{self.users}: {kind} {name} does not exist"
        return f"{self.users}: {kind} {name} has no key {key}; it has {_listed(self.keys)}"

    @property
    def option(self) -> str:
        """The option that provides it."""
        resource, name, key = self.reference
        if self.keys is not None:
            return _KEY_OPTIONS[resource].format(name, key)
        return _OPTIONS[resource].format(name)


def check(jobs: Iterable[MPIJob], objects: Sequence[Manifest], path: Path) -> None:
    """InvalidInput if a job of a file needs what does not exist."""
    found = [each for job in jobs for each in missing(job, objects)]
    if found:
        # Imported here: it loads a parser, which a program without a file does not need.
        from mpi_operator.cli.manifests.manifest_files import source_name  # noqa: PLC0415

        lines = "\n".join(f"  {printable(str(each))}" for each in found)
        options = " ".join(dict.fromkeys(each.option for each in found))
        raise InvalidInput(
            f"missing in {source_name(path)}:\n{lines}",
            f"mpijob run {path} {options}  # provides it",
        )


def missing(job: MPIJob, objects: Sequence[Manifest]) -> list[Missing]:
    """What the pods of a job need and does not exist."""
    known = {(each["kind"], each["metadata"]["name"]): each for each in objects}
    made = {(CONFIG_MAPS, names.config_map(job)), (SECRETS, names.ssh_secret(job))}
    users: dict[Missing, dict[str, None]] = {}
    for role, pod in pod_specs(job).items():
        for each in references(pod):
            if (each.resource, each.name) not in made and not _exists(each, known):
                users.setdefault(_missing(each, known), {})[role] = None
    return [
        each._replace(users=f"{job.metadata.name} {' and '.join(roles)}")
        for each, roles in users.items()
    ]


def pod_specs(job: MPIJob) -> dict[str, Manifest]:
    """The pod specs of a job by role."""
    roles = {"launcher": job.spec.launcher, "worker": job.spec.worker}
    return {role: replica.template.get("spec") or {} for role, replica in roles.items() if replica}


def references(pod: Manifest) -> Iterator[Reference]:
    """The objects that a pod cannot start without."""
    for container in containers(pod):
        yield from _of_variables(container)
    for volume in pod.get("volumes") or ():
        projected = (volume.get("projected") or {}).get("sources") or ()
        for source in (volume, *projected):
            yield from _of_volume(source)


def containers(pod: Manifest) -> list[Manifest]:
    """All containers of a pod."""
    return [*(pod.get("initContainers") or ()), *(pod.get("containers") or ())]


def _of_variables(container: Manifest) -> Iterator[Reference]:
    for source in container.get("envFrom") or ():
        for field, resource in (("configMapRef", CONFIG_MAPS), ("secretRef", SECRETS)):
            yield from _needed(resource, source.get(field))
    for variable in container.get("env") or ():
        source = variable.get("valueFrom") or {}
        for field, resource in (("configMapKeyRef", CONFIG_MAPS), ("secretKeyRef", SECRETS)):
            yield from _needed(resource, source.get(field))


def _of_volume(volume: Manifest) -> Iterator[Reference]:
    for field, resource in (("configMap", CONFIG_MAPS), ("secret", SECRETS)):
        source: Manifest = volume.get(field) or {}
        for key in [item.get("key") for item in source.get("items") or ()] or [None]:
            yield from _needed(resource, source, key)
    if claim := volume.get("persistentVolumeClaim"):
        yield Reference(PERSISTENT_VOLUME_CLAIMS, claim["claimName"])


def _needed(
    resource: Resource, source: Mapping[str, str] | None, key: str | None = None
) -> Iterator[Reference]:
    if source and not source.get("optional"):
        # The name of a Secret is `secretName` in a volume.
        name = source.get("secretName") or source.get("name") or ""
        yield Reference(resource, name, key or source.get("key") or "")


def _exists(reference: Reference, known: Mapping[tuple[str, str], Manifest]) -> bool:
    found = known.get((reference.resource.kind, reference.name))
    return found is not None and (not reference.key or reference.key in keys_of(found))


def _missing(reference: Reference, known: Mapping[tuple[str, str], Manifest]) -> Missing:
    found = known.get((reference.resource.kind, reference.name))
    if found is None:
        return Missing(reference._replace(key=""))
    return Missing(reference, frozenset(keys_of(found)))


def _listed(keys: Iterable[str]) -> str:
    return ", ".join(sorted(keys)) or "none"
