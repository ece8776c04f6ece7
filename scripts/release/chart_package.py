"""The Helm chart as a package.

`helm package` would write the current time into it.
"""

from pathlib import Path

import yaml

from scripts.release import archives


def build(chart: Path, directory: Path, epoch: int) -> Path:
    """Package a chart; return the path of the package."""
    facts = yaml.safe_load((chart / "Chart.yaml").read_text())
    files = {
        f"{facts['name']}/{path.relative_to(chart).as_posix()}": path
        for path in chart.rglob("*")
        if path.is_file() and path.name != ".helmignore"
    }
    package = directory / f"{facts['name']}-{facts['version']}.tgz"
    archives.write(package, files, epoch)
    return package
