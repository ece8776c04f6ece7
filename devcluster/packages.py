"""Programs of nodes that come from Debian packages."""

import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass

from devcluster import cni, locks
from devcluster.binaries import CannotBuild, Say, cache_directory, say_to_stderr


@dataclass(frozen=True)
class Package:
    """A Debian package, and the programs we want from it."""

    name: str
    programs: tuple[str, ...] = ()

    def is_installed(self) -> bool:
        if not self.programs:
            return cni.plugin_directory() is not None
        return all(find(program) for program in self.programs)


FOR_NODES = (
    Package("containerd", ("containerd", "containerd-shim-runc-v2", "ctr")),
    Package("runc", ("runc",)),
    Package("containernetworking-plugins"),
    Package("iptables", ("iptables", "iptables-save", "iptables-restore")),
    Package("iproute2", ("ip",)),
    Package("util-linux", ("nsenter", "unshare")),
    Package("mount", ("mount",)),
)


def provide(packages: Iterable[Package], *, say: Say = say_to_stderr) -> None:
    """Install the missing packages; CannotBuild if that is not possible."""
    missing = [package.name for package in packages if not package.is_installed()]
    if not missing:
        return
    listed = " ".join(missing)
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise CannotBuild(f"Nodes need these packages: {listed}. Install them.")
    say(f"Installing with apt-get: {listed}")
    if _install(missing) is not None and (why := _apt("update") or _install(missing)) is not None:
        raise CannotBuild(f"`apt-get install {listed}` failed: {why}")


def find(program: str) -> str | None:
    """The path of a program, including directories that only root has on its PATH."""
    return shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")


def _install(names: list[str]) -> str | None:
    return _apt("install", "--yes", "--no-install-recommends", *names)


def _apt(*arguments: str) -> str | None:
    """Run apt-get; why it failed, or None.

    Tests start several clusters at once, and others may be installing something: so it waits.
    """
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    cache = cache_directory()
    cache.mkdir(parents=True, exist_ok=True)
    with locks.held(cache / "apt.lock"):
        done = subprocess.run(
            ["apt-get", "--quiet", *arguments, "--option=DPkg::Lock::Timeout=300"],
            env=environment,
            capture_output=True,
            text=True,
        )
    return None if done.returncode == 0 else done.stderr.strip() or f"exit code {done.returncode}"
