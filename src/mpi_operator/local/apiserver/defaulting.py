"""Defaults of the built-in kinds, for the fields that the local cluster reads.

Of an API server's validation only what would otherwise be ignored silently is here: a Job of
several pods would run as a Job of one.
"""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from mpi_operator.kube.errors import Cause
from mpi_operator.kube.resources import JOBS, Manifest
from mpi_operator.local.job_labels import CONTROLLER_UID, tracking_labels

from . import api_errors

_POD_SPEC: Mapping[str, Any] = {"restartPolicy": "Always", "terminationGracePeriodSeconds": 30}
_JOB_SPEC: Mapping[str, Any] = {
    "parallelism": 1,
    "completions": 1,
    "backoffLimit": 6,
    "completionMode": "NonIndexed",
    "suspend": False,
    "podReplacementPolicy": "TerminatingOrFailed",
}
_ONE_POD = {"parallelism": 1, "completions": 1, "completionMode": "NonIndexed"}


def pod(manifest: Manifest) -> Manifest:
    return {
        **manifest,
        "spec": {**_POD_SPEC, **manifest.get("spec", {})},
        "status": {"phase": "Pending", **manifest.get("status", {})},
    }


def secret(manifest: Manifest) -> Manifest:
    """A Secret with its `stringData` encoded into `data`."""
    plain = manifest.get("stringData")
    rest = {name: value for name, value in manifest.items() if name != "stringData"}
    if plain:
        encoded = {name: b64encode(text.encode()).decode() for name, text in plain.items()}
        rest["data"] = {**rest.get("data", {}), **encoded}
    return {"type": "Opaque", **rest}


def job(manifest: Manifest) -> Manifest:
    """A Job of one pod, with the generated selector and the labels that match it."""
    metadata = manifest["metadata"]
    spec = {**_JOB_SPEC, **manifest.get("spec", {})}
    template = spec.get("template", {})
    given = template.get("metadata", {})
    name, uid = metadata["name"], metadata["uid"]
    labels = {**tracking_labels(name, uid), **given.get("labels", {})}
    selector = {"matchLabels": {CONTROLLER_UID: uid}}
    _check_one_pod(name, spec)
    return {
        **manifest,
        "spec": {
            "selector": selector,
            **spec,
            "template": {**template, "metadata": {**given, "labels": labels}},
        },
    }


def _check_one_pod(name: str, spec: Mapping[str, Any]) -> None:
    causes = [
        Cause(
            "FieldValueNotSupported",
            f"Unsupported value: {spec[field]}: the local cluster only supports {only}",
            f"spec.{field}",
        )
        for field, only in _ONE_POD.items()
        if spec[field] != only
    ]
    if causes:
        raise api_errors.invalid(JOBS, name, causes)
