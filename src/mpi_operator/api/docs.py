"""The documentation of fields: the strings below them in the source of `types`.

Python throws such strings away, so they are read from the source again, when somebody asks.
"""

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from itertools import pairwise


@cache
def field_docs(cls: type) -> dict[str, str]:
    """What is said about each field of a class, inherited ones included."""
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base.__module__ == cls.__module__:
            docs.update(_own_docs(base))
    return docs


def _own_docs(cls: type) -> Iterator[tuple[str, str]]:
    tree = ast.parse(inspect.getsource(cls)).body[0]
    assert isinstance(tree, ast.ClassDef)
    for statement, following in pairwise(tree.body):
        match statement, following:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                yield name, inspect.cleandoc(text).replace("\n", " ")
