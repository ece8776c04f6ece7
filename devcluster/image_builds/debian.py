"""The base of all images: a minimal Debian, as `debian:<suite>-slim` in a registry.

mmdebstrap makes it in half the time of debootstrap, and verifies the signatures of the archive with
the keys that this machine has.
"""

import hashlib
import subprocess
from pathlib import Path

from devcluster import readiness

_APT = ('APT::Install-Recommends "false"', 'Acquire::Languages "none"')
_DPKG = (
    "force-unsafe-io",
    "path-exclude=/usr/share/doc/*",
    "path-exclude=/usr/share/info/*",
    "path-exclude=/usr/share/locale/*",
    "path-exclude=/usr/share/man/*",
)
# Debian 12 would otherwise bring a program that merges /usr, and all of Perl for it.
_SUITE_OPTIONS = {
    "bookworm": (
        "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
        "--include=usr-is-merged",
    )
}
# As in the images of Debian: what apt downloads and computes is not kept.
APT_SETTINGS = """\
APT::Keep-Downloaded-Packages "false";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
"""
DOCKERFILE = """\
FROM scratch
ADD root.tar /
COPY apt-settings /etc/apt/apt.conf.d/slim
CMD ["bash"]
"""


class ImageNotBuilt(Exception):
    """A build failed; the message has the image and the end of the log."""


def recipe(suite: str) -> str:
    """Everything that the content of a base image depends on."""
    return repr((suite, *_SUITE_OPTIONS.get(suite, ()), _APT, _DPKG, APT_SETTINGS, DOCKERFILE))


def key_of(suite: str) -> str:
    """A hash of the recipe."""
    return hashlib.sha256(recipe(suite).encode()).hexdigest()[:12]


def make(suite: str, target: Path) -> None:
    """Write the file system of a minimal Debian as a tar file."""
    log = target.with_suffix(".log")
    command = [
        *("mmdebstrap", "--variant=apt", "--mode=root", "--format=tar"),
        *(f"--aptopt={option}" for option in _APT),
        *(f"--dpkgopt={option}" for option in _DPKG),
        *_SUITE_OPTIONS.get(suite, ()),
        *(suite, str(target)),
    ]
    with log.open("wb") as output:
        done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise ImageNotBuilt(
            f"Cannot build Debian {suite}: mmdebstrap exited with {done.returncode}. The end of its"
            f" log:\n{readiness.last_lines(log)}"
        )
