"""The parts of the Helm chart that have their source elsewhere: `make generate` writes them.

The CRD, the webhooks and the permissions come from `mpi_operator.install`, the version from the
package, and the README and the schema of the values from the comments and defaults in values.yaml.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from mpi_operator import __version__
from mpi_operator.api.crd import custom_resource_definition, v2beta1_only
from mpi_operator.install import rbac, webhooks
from mpi_operator.install.installation import NAME, Installation, Manifest
from mpi_operator.install.yaml_text import dumped, with_reasons

CHART = Path(__file__).parents[1] / "deploy/chart"

_HEADER = "{{- /* Made by `make generate`. Do not edit. */}}\n"
# Values that a template computes. They stand alone in the manifests, so they can be replaced.
_NAMESPACE, _LABELS, _ANNOTATIONS = "THE-NAMESPACE", "THE-LABELS", "THE-ANNOTATIONS"
_TEMPLATES = {
    f"{_NAMESPACE}": '{{ include "mpi-operator.namespace" . }}',
    f" {_LABELS}": '\n    {{- include "mpi-operator.labels" . | nindent 4 }}',
    f" {_ANNOTATIONS}": '\n    {{- include "mpi-operator.injectCA" . | nindent 4 }}',
}
_KEPT = "helm.sh/resource-policy"
_RULES = {
    "operator": rbac.OPERATOR,
    "lock": rbac.LOCK,
    "exec": rbac.EXEC,
    "gang": rbac.GANG,
    "certificates": rbac.CERTIFICATES,
    "trust": rbac.TRUST,
    "edit": rbac.EDIT,
    "view": rbac.VIEW,
}
_CHOICES = {
    "image.pullPolicy": ["Always", "IfNotPresent", "Never"],
    "logLevel": ["debug", "info", "warning", "error"],
}
_NUMBER_OR_PERCENTAGE = ("podDisruptionBudget.maxUnavailable",)
# Objects of Kubernetes: their keys are not ours to check.
_FOREIGN = (
    "affinity",
    "metrics.grafanaDashboard.labels",
    "metrics.podMonitor.labels",
    "metrics.prometheusRule.labels",
    "metrics.serviceMonitor.labels",
    "nodeSelector",
    "podAnnotations",
    "podLabels",
    "podSecurityContext",
    "resources",
    "securityContext",
    "serviceAccount.annotations",
    "webhooks.certManager.issuerRef",
)
_LONGEST_DEFAULT = 40  # in a table
_WORDS = ("watchNamespaces", "extraArgs")  # lists of strings


def chart() -> str:
    """Chart.yaml. Helm wants semantic versions; the image has the version of the package."""
    content = {
        "apiVersion": "v2",
        "name": NAME,
        "description": "Run MPI jobs on Kubernetes: the operator for MPIJobs",
        "type": "application",
        "version": re.sub(r"\.?(dev|a|b|rc)(\d+)$", r"-\1.\2", __version__),
        "appVersion": __version__,
        "kubeVersion": ">=1.30.0-0",
        "keywords": ["mpi", "horovod", "allreduce", "training", "kubeflow"],
    }
    return "# Made by `make generate`. Do not edit.\n" + yaml.safe_dump(content, sort_keys=False)


def rules() -> str:
    """The permissions, as templates that roles include."""
    return _HEADER + "".join(
        f'\n{{{{- define "mpi-operator.rules.{name}" -}}}}\n'
        f"{with_reasons(dumped([rule.manifest for rule in each]))}{{{{- end }}}}\n"
        for name, each in _RULES.items()
    )


def crd() -> str:
    """The CRD as an ordinary template, so that it is upgraded; Helm never deletes it.

    Without webhooks it has one version, which nothing converts. It still names the webhook: the
    operator has added a CA there, and Helm could not take that away when webhooks are switched off.
    """
    every, one = custom_resource_definition(_NAMESPACE), v2beta1_only()
    one["spec"]["conversion"] = every["spec"]["conversion"]
    for each in (every, one):
        each["metadata"]["annotations"] = {_KEPT: "keep"}
    text = _templated(every).replace(
        f"    {_KEPT}: keep\n",
        f'    {_KEPT}: keep\n    {{{{- include "mpi-operator.injectCA" . | nindent 4 }}}}\n',
    )
    return (
        f"{_HEADER}{{{{- if .Values.crds.install }}}}\n{{{{- if .Values.webhooks.enabled }}}}\n"
        f"{text}{{{{- else }}}}\n{_templated(one)}{{{{- end }}}}\n{{{{- end }}}}\n"
    )


def webhook_objects() -> str:
    """The Service of the webhooks, and their configurations."""
    objects = webhooks.everything(Installation(namespace=_NAMESPACE))
    for each in objects:
        each["metadata"]["labels"] = _LABELS
        if each["kind"] != "Service":
            each["metadata"]["annotations"] = _ANNOTATIONS
    texts = "---\n".join(map(_templated, objects))
    return f"{_HEADER}{{{{- if .Values.webhooks.enabled }}}}\n{texts}{{{{- end }}}}\n"


def _templated(manifest: Manifest) -> str:
    text = dumped(manifest)
    if "{{" in text:
        raise ValueError("a manifest has braces that Helm would take for a template")
    for value, template in _TEMPLATES.items():
        text = text.replace(value, template)
    return text


class Value(NamedTuple):
    """One value of the chart, and its documentation."""

    path: str
    default: Any
    meaning: str


def values() -> list[Value]:
    """Every value, in the order of values.yaml. Its comment is above it."""
    text = (CHART / "values.yaml").read_text()
    defaults = yaml.safe_load(text)
    return [
        Value(path, _at(defaults, path), meaning) for path, meaning in _commented(text.splitlines())
    ]


def _commented(lines: list[str]) -> Iterator[tuple[str, str]]:
    parents: list[tuple[int, str]] = []
    comment: list[str] = []
    for line in lines:
        found = re.match(r"( *)(?:# (.*)|(\w+):)", line)
        if found is None:
            comment = []
        elif found[2] is not None:
            comment.append(found[2])
        else:
            parents = [
                *(each for each in parents if each[0] < len(found[1])),
                (len(found[1]), found[3]),
            ]
            if comment:
                yield ".".join(name for _, name in parents), " ".join(comment)
            comment = []


def _at(values: Any, path: str) -> Any:
    for name in path.split("."):
        values = values[name]
    return values


def readme() -> str:
    """How to use the chart, and every value."""
    rows = "".join(
        f"| `{path}` | {_code(default)} | {meaning} |\n" for path, default, meaning in values()
    )
    return (
        "<!-- Made by `make generate`. Do not edit. -->\n# Helm chart of MPI Operator\n\n"
        "```shell\nhelm install mpi-operator deploy/chart\n"
        "kubectl rollout status deployment/mpi-operator -n mpi-operator\n```\n\n"
        "`helm upgrade` upgrades the CRD, too. `helm uninstall` keeps it, and with it all jobs.\n"
        "[How to run the operator](../../docs/how-to/run-the-operator.md#with-helm).\n\n"
        f"## Values\n\n| value | default | meaning |\n|---|---|---|\n{rows}"
    )


def _code(default: Any) -> str:
    text = json.dumps(default)
    return f"`{text}`" if len(text) < _LONGEST_DEFAULT else "see `values.yaml`"


def schema() -> str:
    """A schema that refuses values of a wrong type, and names that do not exist."""
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    content = {"$schema": "http://json-schema.org/draft-07/schema#", **_schema_of(defaults, "")}
    # What Helm itself passes to a chart that others depend on.
    content["properties"]["global"] = {"type": "object"}
    return json.dumps(content, indent=2) + "\n"


def _schema_of(default: Any, path: str) -> dict[str, Any]:
    if path in _CHOICES:
        return {"enum": _CHOICES[path]}
    if path in _NUMBER_OR_PERCENTAGE:
        return {"type": ["integer", "string"], "pattern": "^[0-9]+%$", "minimum": 0}
    if path in _FOREIGN:
        return {"type": "object"}
    if isinstance(default, dict):
        prefix = f"{path}." if path else ""
        properties = {name: _schema_of(each, prefix + name) for name, each in default.items()}
        return {"type": "object", "additionalProperties": False, "properties": properties}
    if isinstance(default, list):
        items = {"type": "string"} if path in _WORDS else {"type": "object"}
        return {"type": "array", "items": items}
    if isinstance(default, bool):
        return {"type": "boolean"}
    return {"type": "integer", "minimum": 0} if isinstance(default, int) else {"type": "string"}


FILES = {
    "deploy/chart/Chart.yaml": chart,
    "deploy/chart/README.md": readme,
    "deploy/chart/values.schema.json": schema,
    "deploy/chart/templates/_rules.tpl": rules,
    "deploy/chart/templates/crd.yaml": crd,
    "deploy/chart/templates/webhooks.yaml": webhook_objects,
}
