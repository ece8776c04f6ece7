"""The downward API: fields and resources of a pod, for its variables and files."""

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import ceil

from mpi_operator.kube.resources import Manifest

_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['([^']*)'\]")
_THOUSANDS = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_SCALES = {suffix: Fraction(1000) ** power for power, suffix in enumerate(_THOUSANDS, -3)} | {
    f"{letter}i": Fraction(1024) ** power for power, letter in enumerate("KMGTPE", 1)
}
_QUANTITY = re.compile(r"([+-]?[\d.]+(?:[eE][+-]?\d+)?)([KMGTPE]i|[numkMGTPE]?)", re.ASCII)


class UnknownField(ValueError):
    """A pod refers to a field that is not supported here."""


def field(pod: Manifest, path: str) -> str:
    """A field of the pod, as `fieldRef` names it."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    if match := _SUBSCRIPT.fullmatch(path):
        return str((metadata.get(match[1]) or {}).get(match[2], ""))
    if path in ("metadata.labels", "metadata.annotations"):
        return _lines(metadata.get(path.partition(".")[2]) or {})
    known = {
        "metadata.name": metadata["name"],
        "metadata.namespace": metadata.get("namespace", ""),
        "metadata.uid": metadata.get("uid", ""),
        "spec.nodeName": pod["spec"].get("nodeName", ""),
        "spec.serviceAccountName": pod["spec"].get("serviceAccountName", ""),
        "status.podIP": status.get("podIP", ""),
        "status.podIPs": status.get("podIP", ""),
        "status.hostIP": status.get("hostIP", ""),
        "status.hostIPs": status.get("hostIP", ""),
    }
    if path not in known:
        raise UnknownField(f"unsupported fieldPath: {path}")
    return str(known[path])


def resource(
    pod: Manifest, container: Manifest, reference: Manifest, machine: Mapping[str, str]
) -> str:
    """A quantity, as `resourceFieldRef` names it; `machine` is used where there is no limit."""
    name = str(reference["resource"])
    kind, _, resource_name = name.partition(".")
    containers = {each["name"]: each for each in pod["spec"]["containers"]}
    # A variable refers to its own container; a file of a volume names one.
    source = containers.get(reference.get("containerName")) or container
    resources = source.get("resources") or {}
    given = (resources.get(kind) or {}).get(resource_name)
    if given is None and kind == "requests":
        given = (resources.get("limits") or {}).get(resource_name)
    if given is None:
        given = machine.get(resource_name, "0") if kind == "limits" else "0"
    divisor = quantity(reference.get("divisor") or "1") or Fraction(1)
    return str(ceil(quantity(given) / divisor))


def quantity(text: object) -> Fraction:
    """A quantity such as 500m, 2Gi or 1e3; ValueError if it is malformed."""
    match = _QUANTITY.fullmatch(str(text))
    try:
        if match is None:
            raise ValueError
        return Fraction(Decimal(match[1])) * _SCALES[match[2]]
    except (ValueError, InvalidOperation):
        raise ValueError(f"{text!r} is not a quantity such as 500m or 2Gi") from None


def _lines(entries: Mapping[str, str]) -> str:
    quoted = (
        (key, value.replace("\\", "\\\\").replace('"', '\\"')) for key, value in entries.items()
    )
    return "\n".join(f'{key}="{value}"' for key, value in sorted(quoted))
