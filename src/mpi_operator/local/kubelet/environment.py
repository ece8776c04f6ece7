"""The variables and the command line of a container.

The machine's own environment stands in for that of an image: there the user's PATH, HOME and
language are what they expect. What would make an MPI believe that it runs inside another job, or
inside another cluster, is left out.
"""

import re
from collections.abc import Mapping

import msgspec

from mpi_operator.kube.resources import CONFIG_MAPS, SECRETS, Manifest

from .configuration import Lookup, Missing, keys_of, value_of
from .downward_api import UnknownField, field, resource

_FOREIGN = re.compile(
    r"(OMPI|PMIX|PRTE|ORTE|PMI|HYDRA|MPIR|MPICH|I_MPI|SLURM|PBS|LSB|KUBERNETES|HOROVOD)_.*"
    r"|TMPDIR|HOSTNAME|PWD|OLDPWD|SHLVL|_|MAIL|PYTHON(HOME|STARTUP|INSPECT)"
)
# $(NAME), and $$(NAME) for those who mean just that.
_REFERENCE = re.compile(r"\$(\$|\(([^()\s]*)\))")


def machine_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """What pods take over from the environment of this process."""
    return {name: value for name, value in variables.items() if not _FOREIGN.fullmatch(name)}


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """A text with $(NAME) replaced; what is not known stays, as in Kubernetes."""

    def replacement(match: re.Match[str]) -> str:
        if match[1] == "$":
            return "$"
        return variables.get(match[2], match[0])

    return _REFERENCE.sub(replacement, text)


class Surroundings(msgspec.Struct, frozen=True):
    """What a container's variables may refer to."""

    pod: Manifest
    lookup: Lookup
    machine: Mapping[str, str]  # its resources: cpu, memory


async def declared(container: Manifest, surroundings: Surroundings) -> dict[str, str]:
    """The variables that a container declares; Missing or UnknownField where that cannot be."""
    variables: dict[str, str] = {}
    for source in container.get("envFrom") or ():
        variables.update(await _from_source(source, surroundings))
    for variable in container.get("env") or ():
        value = await _value(variable, container, variables, surroundings)
        if value is not None:
            variables[variable["name"]] = value
    return variables


async def _from_source(source: Manifest, surroundings: Surroundings) -> dict[str, str]:
    prefix = source.get("prefix") or ""
    for kind, known in (("configMapRef", CONFIG_MAPS), ("secretRef", SECRETS)):
        if reference := source.get(kind):
            held = await keys_of(
                surroundings.lookup,
                known,
                reference["name"],
                optional=bool(reference.get("optional")),
            )
            return {prefix + key: text.decode(errors="replace") for key, text in held.items()}
    raise UnknownField(f"envFrom {', '.join(source)} is not known here")


async def _value(
    variable: Manifest,
    container: Manifest,
    variables: Mapping[str, str],
    surroundings: Surroundings,
) -> str | None:
    source = variable.get("valueFrom")
    if not source:
        return expanded(str(variable.get("value") or ""), variables)
    if reference := source.get("fieldRef"):
        return field(surroundings.pod, reference["fieldPath"])
    if reference := source.get("resourceFieldRef"):
        return resource(surroundings.pod, container, reference, surroundings.machine)
    if reference := source.get("configMapKeyRef"):
        return await value_of(surroundings.lookup, CONFIG_MAPS, reference)
    if reference := source.get("secretKeyRef"):
        return await value_of(surroundings.lookup, SECRETS, reference)
    raise UnknownField(f"variable {variable['name']}: {', '.join(source)} is not known here")


def command_line(container: Manifest, variables: Mapping[str, str]) -> list[str]:
    """The words of a container's command; none where only its image would know."""
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    return [expanded(str(word), variables) for word in words]


__all__ = [
    "Missing",
    "Surroundings",
    "UnknownField",
    "command_line",
    "declared",
    "expanded",
    "machine_environment",
]
