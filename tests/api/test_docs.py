"""The Python snippets of the documentation run."""

import ast
import re
from pathlib import Path

import pytest

from mpi_operator.kube.http import HttpClient

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs/how-to/talk-to-kubernetes.md"


def snippets(path: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture
def as_kubectl(kubeconfig: Path | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have `config.load()` find the tests' API server."""
    if kubeconfig is not None:
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))


@pytest.mark.usefixtures("as_kubectl")
@pytest.mark.parametrize("snippet", snippets(GUIDE), ids=lambda snippet: snippet[-40:-1])
async def test_the_snippets_of_the_guide_run(snippet: str, client: HttpClient, namespace: str):
    """Some check a result themselves; the others must run without an error."""
    code = compile(snippet, GUIDE.name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    await eval(code, {"client": client, "namespace": namespace})
