"""Names: which ones are legal, and how the cluster makes one up."""

import random
import re
from collections.abc import Iterator

from mpi_operator.kube.errors import Cause
from mpi_operator.kube.resources import Resource

from . import api_errors

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character "
    f"(e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character "
    f"(e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_LONGEST_NAME, _LONGEST_LABEL = 253, 63
# No vowels, so that chance makes no words; the rest is Kubernetes' choice too.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_RANDOM_LETTERS = 5


def made_up(beginning: str) -> str:
    """A name that begins so; the end is random. As on Kubernetes it fits into a DNS label."""
    end = "".join(random.choices(_LETTERS, k=_RANDOM_LETTERS))
    return beginning[: _LONGEST_LABEL - _RANDOM_LETTERS] + end


def check(resource: Resource, namespace: str, name: str) -> None:
    """Invalid where no object may be called so."""
    if causes := tuple(_complaints(namespace, name)):
        raise api_errors.invalid(resource, name, causes)


def _complaints(namespace: str, name: str) -> Iterator[Cause]:
    if not name:
        required = "Required value: name or generateName is required"
        yield Cause("FieldValueRequired", required, "metadata.name")
    elif len(name) > _LONGEST_NAME:
        yield _wrong("metadata.name", name, f"must be no more than {_LONGEST_NAME} characters")
    elif not re.fullmatch(_SUBDOMAIN, name):
        yield _wrong("metadata.name", name, _SUBDOMAIN_RULE)
    if len(namespace) > _LONGEST_LABEL:
        why = f"must be no more than {_LONGEST_LABEL} characters"
        yield _wrong("metadata.namespace", namespace, why)
    elif namespace and not re.fullmatch(_LABEL, namespace):
        yield _wrong("metadata.namespace", namespace, _LABEL_RULE)


def _wrong(field: str, value: str, rule: str) -> Cause:
    return Cause("FieldValueInvalid", f'Invalid value: "{value}": {rule}', field)
