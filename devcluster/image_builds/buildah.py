"""Debian's buildah, with storage of its own: other images are neither seen nor touched."""

import os
import subprocess
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from devcluster import readiness
from devcluster.image_builds import debian

# The certificates that this machine trusts, mounted during builds only: a company network may
# intercept TLS.
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
        self._run_checked("tag", name, *others)

    def remove(self, names: Sequence[str]) -> None:
        """Remove these names, and the images without another name."""
        if names:
            self._run("rmi", "--force", *names)

    def remove_containers(self) -> None:
        """Remove the containers of killed builds."""
        self._run("rm", "--all")

    def remove_everything(self) -> None:
        """Remove all images, but no archives."""
        self.remove_containers()
        self._run("rmi", "--all", "--force")

    def build_debian(self, root: Path, tags: Sequence[str]) -> None:
        """Build the base image from a root file system."""
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
        """Build a Dockerfile; its base image must exist here."""
        self._run_checked(
            "bud",
            *("--isolation", "chroot", "--network", "host", "--pull-never"),
            *("--layers",) * keeps_layers,
            *self._pip_volumes() * uses_pip,
            *(f"--build-arg={name}={value}" for name, value in arguments.items()),
            *(f"--tag={tag}" for tag in tags),
            *("--file", str(dockerfile), str(context)),
        )

    def write_archive(self, name: str, tag: str, archive: Path) -> None:
        """Write an image as a docker archive, named `tag`."""
        archive.unlink(missing_ok=True)
        # By its ID: with a name, the archive would have that name too.
        [image_id, *_] = self._run("images", "--quiet", name).stdout.split()
        self._run_checked("push", image_id, f"docker-archive:{archive}:{tag}")

    @cached_property
    def _driver(self) -> str:
        # overlay shares what images have in common; vfs copies it, but works wherever files do.
        works = self._execute("overlay", ["info"], subprocess.DEVNULL).returncode == 0
        return "overlay" if works else "vfs"

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self._execute(self._driver, arguments, subprocess.PIPE)

    def _run_checked(self, *arguments: str) -> None:
        log = self._directory / "logs" / f"{abs(hash(arguments)):x}.log"
        with log.open("wb") as output:
            done = self._execute(self._driver, arguments, output.fileno())
        if done.returncode != 0:
            raise debian.ImageNotBuilt(
                f"`buildah {' '.join(arguments)}` exited with {done.returncode}. The end of its log"
                f" ({log}):\n{readiness.last_lines(log)}"
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
