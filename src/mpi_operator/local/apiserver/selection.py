"""Which objects of a kind somebody asks for."""

from typing import NamedTuple

from mpi_operator.kube import client

from . import api_errors
from .selectors import EVERYTHING, Selector, SelectorError, parse_fields, parse_labels
from .served_kinds import Kind
from .stored_object import Stored


class Selection(NamedTuple):
    """Those of a namespace, or of all of them, that both selectors choose."""

    namespace: str = ""
    labels: Selector = EVERYTHING
    fields: Selector = EVERYTHING

    def has(self, stored: Stored | None) -> bool:
        return (
            stored is not None
            and self.namespace in ("", stored.key.namespace)
            and self.labels.matches(stored.labels)
            and self.fields.matches(stored.fields)
        )


def parse_selection(kind: Kind, namespace: str, selector: client.Selector) -> Selection:
    """What a request asks for; BadRequest where that cannot be read."""
    try:
        return Selection(
            namespace if kind.resource.namespaced else "",
            parse_labels(selector.labels),
            parse_fields(selector.fields, kind.fields),
        )
    except SelectorError as error:
        raise api_errors.bad_request(str(error)) from error
