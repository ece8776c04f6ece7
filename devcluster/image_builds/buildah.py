"""Debian's buildah, with a storage of its own: nobody else's images are seen or touched."""

import os
import subprocess
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from devcluster import readiness
from devcluster.image_builds import debian
from devcluster.image_builds.failures import ImageNotBuilt

# Where the build of an image finds the certificates that this machine trusts: a company's network
# may inspect TLS. Only mounted while it builds.
_CERTIFICATES = "/run/certificates.crt"
_BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt")


class Buildah:
    """Builds and keeps images in one directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        (directory / "logs").mkdir(parents=True, exist_ok=True)

    def has(self, name: str) -> bool:
        return self._run("images", "--quiet", name).returncode == 0

    def names(self) -> list[str]:
        """All names of all images."""
        listed = self._run("images", "--format", "{{.Name}}:{{.Tag}}").stdout.split()
        return [name for name in listed if not name.startswith("<none>")]

    def tag(self, name: str, others: Sequence[str]) -> None:
        self._must("tag", name, *others)

    def remove(self, names: Sequence[str]) -> None:
        """Forget these names, and the images that have no other."""
        if names:
            self._run("rmi", "--force", *names)

    def remove_containers(self) -> None:
        """What builds that were killed left mounted."""
        self._run("rm", "--all")

    def remove_everything(self) -> None:
        """All images; archives are not here."""
        self.remove_containers()
        self._run("rmi", "--all", "--force")

    def build_debian(self, root: Path, tags: Sequence[str]) -> None:
        """An image of a file system."""
        (root.parent / "Dockerfile").write_text(debian.DOCKERFILE)
        (root.parent / "apt-settings").write_text(debian.APT_SETTINGS)
        self.build(root.parent, root.parent / "Dockerfile", tags, {})

    def build(
        self,
        context: Path,
        dockerfile: Path,
        tags: Sequence[str],
        arguments: dict[str, str],
        *,
        uses_pip: bool = False,
        keeps_layers: bool = False,
    ) -> None:
        """Build a Dockerfile; what its FROM names must be here."""
        self._must(
            "bud",
            *("--isolation", "chroot", "--network", "host", "--pull-never"),
            *("--layers",) * keeps_layers,
            *self._pip_volumes() * uses_pip,
            *(f"--build-arg={name}={value}" for name, value in arguments.items()),
            *(f"--tag={tag}" for tag in tags),
            *("--file", str(dockerfile), str(context)),
        )

    def write_archive(self, name: str, tag: str, archive: Path) -> None:
        """Write an image as a docker archive in which it is called `tag`."""
        archive.unlink(missing_ok=True)
        # By its number: under a name, the archive would have that name too.
        [number, *_] = self._run("images", "--quiet", name).stdout.split()
        self._must("push", number, f"docker-archive:{archive}:{tag}")

    @cached_property
    def _driver(self) -> str:
        # overlay shares what images have in common; vfs copies it, but works wherever files do.
        works = self._execute("overlay", ["info"], subprocess.DEVNULL).returncode == 0
        return "overlay" if works else "vfs"

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self._execute(self._driver, arguments, subprocess.PIPE)

    def _must(self, *arguments: str) -> None:
        log = self._directory / "logs" / f"{abs(hash(arguments)):x}.log"
        with log.open("wb") as output:
            done = self._execute(self._driver, arguments, output.fileno())
        if done.returncode != 0:
            raise ImageNotBuilt(
                f"`buildah {' '.join(arguments)}` exited with {done.returncode}. Its last lines"
                f" (all of them are in {log}):\n{readiness.last_lines(log)}"
            )
        log.unlink()

    def _execute(
        self, driver: str, arguments: Sequence[str], output: int
    ) -> subprocess.CompletedProcess[str]:
        places = [
            "--root",
            str(self._directory / "storage"),
            "--runroot",
            str(self._directory / "run"),
        ]
        return subprocess.run(
            ["buildah", *places, "--storage-driver", driver, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            env=_environment(),
        )

    def _pip_volumes(self) -> list[str]:
        bundle = next((path for path in _BUNDLES if os.path.exists(path)), None)
        if bundle is None:
            return []
        settings = self._directory / "pip.conf"
        index = os.environ.get("PIP_INDEX_URL")
        settings.write_text(
            f"[global]\ncert = {_CERTIFICATES}\n" + (f"index-url = {index}\n" if index else "")
        )
        return [f"--volume={bundle}:{_CERTIFICATES}:ro", f"--volume={settings}:/etc/pip.conf:ro"]


def _environment() -> dict[str, str]:
    # Settings of pip on this machine may name paths that a container does not have.
    return {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
