"""What the documentation shows works."""

import ast
import re
from pathlib import Path

import pytest

from mpi_operator.kube.http import HttpClient

GUIDE = Path(__file__).parents[2] / "docs/how-to/talk-to-kubernetes.md"
SNIPPETS = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: snippet.splitlines()[0])
async def test_the_snippets_of_the_guide_run(snippet: str, client: HttpClient, namespace: str):
    code = compile(snippet, GUIDE.name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    await eval(code, {"client": client, "namespace": namespace})
