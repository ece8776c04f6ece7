"""Names of objects: which ones are valid, and how `generateName` makes one."""

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
_MAX_NAME, _MAX_LABEL = 253, 63
# Kubernetes' choice: without vowels a random name spells no words.
_RANDOM_CHARACTERS = "bcdfghjklmnpqrstvwxz2456789"
_RANDOM_LENGTH = 5


def generate(prefix: str) -> str:
    """A name with this prefix and a random end. As on Kubernetes it fits into a DNS label."""
    end = "".join(random.choices(_RANDOM_CHARACTERS, k=_RANDOM_LENGTH))
    return prefix[: _MAX_LABEL - _RANDOM_LENGTH] + end


def validate(resource: Resource, namespace: str, name: str) -> None:
    """Raise Invalid if an object cannot have this name or namespace."""
    if causes := tuple(_causes(namespace, name)):
        raise api_errors.invalid(resource, name, causes)


def _causes(namespace: str, name: str) -> Iterator[Cause]:
    if not name:
        required = "Required value: name or generateName is required"
        yield Cause("FieldValueRequired", required, "metadata.name")
    elif len(name) > _MAX_NAME:
        yield _invalid("metadata.name", name, f"must be no more than {_MAX_NAME} characters")
    elif not re.fullmatch(_SUBDOMAIN, name):
        yield _invalid("metadata.name", name, _SUBDOMAIN_RULE)
    if len(namespace) > _MAX_LABEL:
        rule = f"must be no more than {_MAX_LABEL} characters"
        yield _invalid("metadata.namespace", namespace, rule)
    elif namespace and not re.fullmatch(_LABEL, namespace):
        yield _invalid("metadata.namespace", namespace, _LABEL_RULE)


def _invalid(field: str, value: str, rule: str) -> Cause:
    return Cause("FieldValueInvalid", f'Invalid value: "{value}": {rule}', field)
