"""Facts about the project that are written in more than one file."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml

from devcluster.image_builds import IMAGES
from mpi_operator import __version__
from mpi_operator.install.installation import default_image

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github/workflows").iterdir())
CLAIMED = [
    version
    for line in PROJECT["classifiers"]
    for version in re.findall(r"^Programming Language :: Python :: (3\.\d+)$", line)
]


def test_all_that_has_a_version_has_the_same_one():
    chart = yaml.safe_load((ROOT / "deploy/chart/Chart.yaml").read_text())
    [image] = IMAGES["mpi-operator"].tags
    assert {metadata.version("mpi-operator"), chart["appVersion"]} == {__version__}
    assert image == default_image() == f"mpioperator/mpi-operator:{__version__}"


def test_the_claimed_pythons_begin_with_the_oldest_one_that_is_allowed():
    assert PROJECT["requires-python"] == f">={CLAIMED[0]}"


def test_every_claimed_python_runs_the_unit_tests_here():
    (supported,) = re.findall(r"supported=\((.*?)\)", (ROOT / "scripts/test-pythons").read_text())
    assert supported.split() == CLAIMED


def test_every_claimed_python_runs_the_unit_tests_in_the_workflow():
    workflow = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())
    assert workflow["jobs"]["unit"]["strategy"]["matrix"]["python"] == CLAIMED


def commands(workflow: str) -> list[str]:
    """The lines that a workflow runs."""
    jobs = yaml.safe_load((ROOT / ".github/workflows" / workflow).read_text())["jobs"].values()
    return [
        line for job in jobs for step in job["steps"] for line in step.get("run", "").splitlines()
    ]


def called(workflow: str) -> set[str]:
    """The targets of make that a workflow calls."""
    plain = (re.sub(r"\$\{\{.*?\}\}", "", line) for line in commands(workflow))
    found = (re.search(r"\bmake (.+)", line) for line in plain)
    words = {word for each in found if each for word in each[1].split()}
    return {word for word in words if "=" not in word}


@pytest.mark.parametrize("workflow", [path.name for path in WORKFLOWS])
def test_a_workflow_calls_only_what_the_makefile_has(workflow):
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE))
    assert called(workflow)
    assert called(workflow) <= targets


def test_the_release_workflow_publishes_everything_that_a_release_has():
    assert called("release.yml") == {"release", "push-images", "push-chart"}
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
    used = [step["uses"] for step in jobs["wheel"]["steps"]]
    assert any(each.startswith("pypa/gh-action-pypi-publish@") for each in used)
    assert set(jobs["page"]["needs"]) == set(jobs) - {"build", "page"}


def test_the_hooks_call_only_what_the_checkout_has():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    programs = {hook["entry"].split()[0] for hook in hooks}
    assert all(each.startswith(".venv/bin/") or (ROOT / each).exists() for each in programs)


def test_a_benchmark_dependency_is_pinned_apart_from_what_users_get():
    def pinned(file: str) -> set[str]:
        return {line.partition("==")[0].lower() for line in (ROOT / file).read_text().split()}

    assert not pinned("constraints.txt") & pinned("benchmarks/constraints.txt")
    assert "kubernetes" in pinned("benchmarks/constraints.txt")
