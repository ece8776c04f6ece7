"""Helm of the version that we test with."""

import os
import subprocess
from pathlib import Path
from typing import Any

import yaml

from devcluster import binaries
from tests.support.kubectl import Result

CHART = Path(__file__).parents[2] / "deploy/chart"


def helm(home: Path, *arguments: str, kubeconfig: Path | None = None) -> Result:
    """Run Helm with a home of its own."""
    program = binaries.provide(["helm"])["helm"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    if kubeconfig:
        environment["KUBECONFIG"] = str(kubeconfig)
    done = subprocess.run(
        [program, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    return Result(done.returncode, done.stdout, done.stderr)


def rendered(home: Path, *arguments: str, chart: Path = CHART) -> list[dict[str, Any]]:
    """The objects of the chart with these values."""
    result = helm(home, "template", "mpi-operator", str(chart), *arguments)
    assert result.code == 0, result.errors
    # In C: in Python, reading the CRD takes longer than all of Helm.
    return [each for each in yaml.load_all(result.output, Loader=yaml.CSafeLoader) if each]
