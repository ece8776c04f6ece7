"""Bills of materials in CycloneDX format: of the Python package, and of each image.

The tool, cyclonedx-py, has an environment of its own, because it needs many packages.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from scripts.release.source import Source

_IMAGE_SBOM = Path(__file__).with_name("image_sbom.py")


def of_wheel(tools: Path, source: Source, wheel: Path, directory: Path) -> None:
    """What `pip install mpi-operator[cli]` installs, in the versions that are tested."""
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        environment = _installed(source, wheel, Path(temporary) / "venv")
        project = _with_version(source, Path(temporary) / "pyproject.toml")
        _run(
            source,
            *(str(tools / "bin/cyclonedx-py"), "environment", "--output-reproducible"),
            *("--pyproject", str(project), "--of", "JSON"),
            *("-o", str(directory / f"mpi-operator-{source.version}.cdx.json")),
            str(environment / "bin/python"),
        )


def of_images(tools: Path, source: Source, archives: Sequence[Path], directory: Path) -> None:
    """The Debian and Python packages in each image."""
    directory.mkdir(parents=True, exist_ok=True)
    for archive in archives:
        target = directory / f"{archive.name.removesuffix('.tar.gz')}-image.cdx.json"
        _run(source, str(tools / "bin/python"), str(_IMAGE_SBOM), str(archive), str(target))


def _installed(source: Source, wheel: Path, environment: Path) -> Path:
    """An environment with the wheel, and without pip, which is not shipped."""
    _run(source, sys.executable, "-m", "venv", "--without-pip", str(environment))
    _run(
        source,
        *(sys.executable, "-m", "pip", "--python", str(environment / "bin/python")),
        *("install", "--quiet", "--disable-pip-version-check", "--no-compile"),
        *("--constraint", str(source.directory / "constraints.txt")),
        # By its name: otherwise pip would record a path of this machine.
        *("--find-links", str(wheel.parent), f"mpi-operator[cli]=={source.version}"),
    )
    return environment


def _with_version(source: Source, target: Path) -> Path:
    """The project file with the version in it: the tool cannot find it elsewhere."""
    text = (source.directory / "pyproject.toml").read_text()
    target.write_text(text.replace('dynamic = ["version"]', f'version = "{source.version}"'))
    return target


def _run(source: Source, *command: str) -> None:
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(source.epoch), "PYTHONWARNINGS": "ignore"}
    subprocess.run(command, env=environment, check=True)
