"""What the built-in kinds have where nobody says otherwise, as far as somebody here reads it.

Of the checks that a Kubernetes API server makes only those are here whose breach nobody would
notice later: a Job of several pods would silently be one of a single pod.
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
    """Text that was given to be encoded is."""
    texts = manifest.get("stringData")
    rest = {name: value for name, value in manifest.items() if name != "stringData"}
    if texts:
        encoded = {name: b64encode(text.encode()).decode() for name, text in texts.items()}
        rest["data"] = {**rest.get("data", {}), **encoded}
    return {"type": "Opaque", **rest}


def job(manifest: Manifest) -> Manifest:
    """A Job of one pod, whose template carries the labels by which its pods are found."""
    metadata = manifest["metadata"]
    spec = {**_JOB_SPEC, **manifest.get("spec", {})}
    template = spec.get("template", {})
    described = template.get("metadata", {})
    name, uid = metadata["name"], metadata["uid"]
    labels = {**tracking_labels(name, uid), **described.get("labels", {})}
    selector = {"matchLabels": {CONTROLLER_UID: uid}}
    _check_size(name, spec)
    return {
        **manifest,
        "spec": {
            "selector": selector,
            **spec,
            "template": {**template, "metadata": {**described, "labels": labels}},
        },
    }


def _check_size(name: str, spec: Mapping[str, Any]) -> None:
    causes = [
        Cause(
            "FieldValueNotSupported",
            f"Unsupported value: {spec[field]}: here a Job is one pod, supported value: {only}",
            f"spec.{field}",
        )
        for field, only in _ONE_POD.items()
        if spec[field] != only
    ]
    if causes:
        raise api_errors.invalid(JOBS, name, causes)
