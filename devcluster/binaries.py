"""The programs of a cluster: pinned, built from source once, kept outside the checkout.

Each program belongs to a small Go module under `tools/` whose go.mod and go.sum pin it and
all of its dependencies; the version is read from there. A finished program is in

    ${XDG_CACHE_HOME:-~/.cache}/mpi-operator/bin/<name>-<version>-<hash of the pins>/<name>

and gets that name only after it has run and reported the pinned version, so an interrupted build
is never taken for a finished one. Go's own build cache makes the next attempt continue.

`KUBEBUILDER_ASSETS` names a directory of ready-made programs to use instead.
"""

import hashlib
import os
import platform
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devcluster import locks, readiness

Say = Callable[[str], None]

_MODULES = Path(__file__).parent / "tools"
_SHIPPED = Path(__file__).parents[1] / "cmd"
_HEARTBEAT_SECONDS = 30.0
_OF_KUBERNETES = ("etcd", "kubernetes")  # these must fit together


class CannotBuild(Exception):
    """This machine cannot provide a program; the message says why."""


class BuildFailed(Exception):
    """The compiler failed, or the program does not report the pinned version."""


@dataclass(frozen=True)
class Tool:
    """One program: where it is pinned, what to compile, and how long that usually takes."""

    name: str
    module: str
    requirement: str
    package: str
    usual: str
    version_packages: tuple[str, ...] = ()
    # How it reports its version. If empty, `go version -m` reads it from the program.
    version_arguments: tuple[str, ...] = ("--version",)
    # For our own programs, which have no requirement to read it from.
    own_version: str = ""
    # Their directory, where they are shipped and not only used here.
    directory: Path | None = None

    @property
    def module_directory(self) -> Path:
        return self.directory or _MODULES / self.module

    @property
    def version(self) -> str:
        """The pinned version, with its leading v."""
        return self.own_version or required_version(self._read("go.mod"), self.requirement)

    @property
    def ldflags(self) -> str:
        """Linker flags: no debug tables, and the version that a plain `go build` does not know."""
        major, minor, _ = self.version.removeprefix("v").split(".", 2)
        stamps = {"gitVersion": self.version, "gitMajor": major, "gitMinor": minor}
        return " ".join(
            [
                "-s -w",
                *(
                    f"-X {package}.{key}={value}"
                    for package in self.version_packages
                    for key, value in stamps.items()
                ),
            ]
        )

    @property
    def path(self) -> Path:
        """Where the finished program is, or will be."""
        sources = sorted(path.name for path in self.module_directory.glob("*.go"))
        ours = sources if self.package == "." else ()
        files = (self._read(file) for file in ("go.mod", "go.sum", *ours))
        pins = "\0".join((*filter(None, files), self.ldflags, platform.machine()))
        key = hashlib.sha256(pins.encode()).hexdigest()[:12]
        return cache_directory() / f"{self.name}-{self.version}-{key}" / self.name

    def _read(self, file: str) -> str:
        path = self.module_directory / file
        return path.read_text() if path.exists() else ""


def _kubernetes(name: str, usual: str, **options: Any) -> Tool:
    return Tool(
        name=name,
        module="kubernetes",
        requirement="k8s.io/kubernetes",
        package=f"k8s.io/kubernetes/cmd/{name}",
        usual=usual,
        # The first is what `--version` reports, the second what requests call themselves.
        version_packages=("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"),
        **options,
    )


def _scheduler_plugins(command: str, usual: str) -> Tool:
    return Tool(
        name=f"scheduler-plugins-{command}",
        module="scheduler-plugins",
        requirement="sigs.k8s.io/scheduler-plugins",
        package=f"sigs.k8s.io/scheduler-plugins/cmd/{command}",
        usual=usual,
        # A stamped version would be taken for that of Kubernetes, and it would not start.
        version_arguments=(),
    )


TOOLS = {
    tool.name: tool
    for tool in (
        Tool(
            name="etcd",
            module="etcd",
            requirement="go.etcd.io/etcd/server/v3",
            package="go.etcd.io/etcd/server/v3",
            usual="a minute",
        ),
        _kubernetes("kube-apiserver", "5 minutes"),
        _kubernetes("kube-controller-manager", "a minute after kube-apiserver"),
        _kubernetes("kube-scheduler", "half a minute after kube-apiserver"),
        _kubernetes("kubelet", "a minute after kube-apiserver"),
        _kubernetes("kube-proxy", "half a minute after kube-apiserver"),
        _kubernetes("kubectl", "a minute", version_arguments=("version", "--client")),
        Tool(
            name="coredns",
            module="coredns",
            requirement="github.com/coredns/coredns",
            package=".",
            usual="2 minutes",
            version_arguments=("-version",),
        ),
        Tool(
            name="pause",
            module="pause",
            requirement="",
            package=".",
            usual="a few seconds",
            own_version="v1.0.0",
        ),
        Tool(
            name="kubectl-delivery",
            module="kubectl-delivery",
            requirement="",
            package=".",
            usual="10 seconds",
            own_version="v1.0.0",
            version_arguments=("version",),
            directory=_SHIPPED / "kubectl-delivery",
        ),
        _scheduler_plugins("scheduler", "4 minutes"),
        _scheduler_plugins("controller", "a minute after its scheduler"),
        Tool(
            name="kubeflow-mpi-operator",
            module="mpi-operator",
            requirement="github.com/kubeflow/mpi-operator",
            package="github.com/kubeflow/mpi-operator/cmd/mpi-operator",
            usual="5 minutes",
            # It only reports a version that is stamped at link time.
            version_arguments=(),
        ),
        Tool(
            name="katib-trial-status",
            module="katib",
            requirement="github.com/kubeflow/katib",
            package=".",
            usual="2 minutes",
            version_arguments=(),
        ),
        Tool(
            name="training-operator",
            module="training-operator",
            requirement="github.com/kubeflow/training-operator",
            package="github.com/kubeflow/training-operator/cmd/training-operator.v1",
            usual="2 minutes",
            # It reports none.
            version_arguments=(),
        ),
        Tool(
            name="kwok",
            module="kwok",
            requirement="sigs.k8s.io/kwok",
            package="sigs.k8s.io/kwok/cmd/kwok",
            usual="2 minutes",
            version_arguments=(),
        ),
        Tool(
            name="helm",
            module="helm",
            requirement="helm.sh/helm/v4",
            package="helm.sh/helm/v4/cmd/helm",
            usual="3 minutes",
            version_arguments=(),
        ),
        Tool(
            name="actionlint",
            module="actionlint",
            requirement="github.com/rhysd/actionlint",
            package="github.com/rhysd/actionlint/cmd/actionlint",
            usual="20 seconds",
            version_arguments=(),
        ),
        Tool(
            name="kueue",
            module="kueue",
            requirement="sigs.k8s.io/kueue",
            package="sigs.k8s.io/kueue/cmd/kueue",
            usual="6 minutes",
            # It only reports a version that is stamped at link time.
            version_arguments=(),
        ),
        Tool(
            name="flyte-backend",
            module="flyte-backend",
            requirement="github.com/flyteorg/flyte/flyteplugins",
            package=".",
            usual="4 minutes",
            version_arguments=(),
        ),
    )
}

# The programs of each use of a cluster, so that only those have to be built.
USES = {
    "control-plane": ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"),
    "nodes": ("kubelet", "kube-proxy", "kubectl", "coredns", "pause"),
    "gang-scheduling": ("scheduler-plugins-scheduler", "scheduler-plugins-controller"),
    "images": ("kubectl-delivery",),
    "installation": ("kubectl", "helm"),
    "checks": ("actionlint",),
    "benchmarks": ("kubeflow-mpi-operator", "kwok"),
    "peers": (
        "kueue",
        "kubeflow-mpi-operator",
        "training-operator",
        "katib-trial-status",
        "flyte-backend",
    ),
}


def say_to_stderr(line: str) -> None:
    """Progress goes to standard error: standard output belongs to results."""
    print(line, file=sys.stderr, flush=True)


def cache_directory() -> Path:
    """The directory of finished programs."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "mpi-operator" / "bin"


def provide(names: Iterable[str], *, say: Say = say_to_stderr) -> dict[str, Path]:
    """The programs by name: from `KUBEBUILDER_ASSETS` if that is set, otherwise built here.

    What is not part of Kubernetes, such as CoreDNS, is built if that directory does not have it.
    """
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    return {name: _provide(name, Path(assets) if assets else None, say) for name in names}


def build(
    names: Iterable[str] = tuple(TOOLS),
    *,
    say: Say = say_to_stderr,
    heartbeat_seconds: float = _HEARTBEAT_SECONDS,
) -> dict[str, Path]:
    """The programs by name, compiling those that are not in the cache yet."""
    return {name: _build_once(TOOLS[name], say, heartbeat_seconds) for name in names}


def required_version(go_mod: str, module: str) -> str:
    """The version that a go.mod requires of a module."""
    found = re.search(rf"^(?:require)?\s+{re.escape(module)} (v\S+)", go_mod, re.MULTILINE)
    if found is None:
        raise ValueError(f"go.mod does not require {module}")
    return found[1]


def reported_version(output: str) -> str | None:
    """The first version number in what a program answers to `--version`, without a leading v."""
    found = re.search(r"\bv?(\d+\.\d+\.\d+\S*)", output)
    return found[1] if found else None


def cached() -> list[Path]:
    """The directories of all cached builds."""
    return sorted(cache_directory().glob("*-v*/"))


def outdated() -> list[Path]:
    """Cached builds of versions that are no longer pinned."""
    wanted = {tool.path.parent for tool in TOOLS.values()}
    return [path for path in cached() if path not in wanted]


def _provide(name: str, assets: Path | None, say: Say) -> Path:
    if assets and (TOOLS[name].module in _OF_KUBERNETES or (assets / name).exists()):
        return _from_assets(assets, name)
    return build([name], say=say)[name]


def _from_assets(assets: Path, name: str) -> Path:
    path = assets / name
    if not os.access(path, os.X_OK):
        raise CannotBuild(
            f"KUBEBUILDER_ASSETS is {assets}, which has no {name}. Add one of the same version as"
            " its kube-apiserver, or unset KUBEBUILDER_ASSETS to build everything from source."
        )
    return path


def _build_once(tool: Tool, say: Say, heartbeat_seconds: float) -> Path:
    if tool.path.exists():
        return tool.path
    cache_directory().mkdir(parents=True, exist_ok=True)
    lock = tool.path.parent.with_name(f"{tool.path.parent.name}.lock")
    with locks.held(
        lock, on_wait=lambda: say(f"{tool.name}: waiting for another process that builds it")
    ) as descriptor:
        if not tool.path.exists():
            _build(tool, say, heartbeat_seconds, descriptor)
    return tool.path


def _build(tool: Tool, say: Say, heartbeat_seconds: float, lock: int) -> None:
    _check_go(tool)
    say(f"{tool.name} {tool.version}: building (usually {tool.usual} on 2 cores, once)")
    started = time.monotonic()
    partial = tool.path.with_suffix(".partial")
    partial.parent.mkdir(parents=True, exist_ok=True)
    # Go refuses to overwrite a file that is not a program, such as half of one.
    partial.unlink(missing_ok=True)
    _compile(tool, partial, say, heartbeat_seconds, lock)
    _check_version(tool, partial)
    partial.rename(tool.path)
    say(f"{tool.name} {tool.version}: built in {time.monotonic() - started:.0f}s")


def _check_go(tool: Tool) -> None:
    # In the module's directory, because there Go itself checks (or downloads) what go.mod asks for.
    needed = _go_directive(tool)
    remedy = f"Install Go {needed} or newer, or set KUBEBUILDER_ASSETS to a directory of binaries."
    try:
        answer = subprocess.run(
            ["go", "version"], cwd=tool.module_directory, capture_output=True, text=True
        )
    except FileNotFoundError:
        raise CannotBuild(
            f"{tool.name} is built from source, but `go` is not on the PATH. {remedy}"
        ) from None
    if answer.returncode != 0:
        raise CannotBuild(f"Cannot build {tool.name}: {answer.stderr.strip()}. {remedy}")
    found = re.search(r"go(\d+(?:\.\d+)*)", answer.stdout.removeprefix("go version"))
    if found is None or _numbers(found[1]) < _numbers(needed):
        raise CannotBuild(
            f"{tool.name} needs Go {needed}, but `go version` says"
            f" {answer.stdout.strip()!r}. {remedy}"
        )


def _go_directive(tool: Tool) -> str:
    found = re.search(r"^go (\S+)", (tool.module_directory / "go.mod").read_text(), re.MULTILINE)
    if found is None:
        raise ValueError(f"{tool.module_directory}/go.mod has no go directive")
    return found[1]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))


def _compile(tool: Tool, target: Path, say: Say, heartbeat_seconds: float, lock: int) -> None:
    command = ["go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false"]
    command += ["-ldflags", tool.ldflags, "-o", str(target), tool.package]
    output = target.with_suffix(".log")
    with output.open("wb") as log:
        compiler = subprocess.Popen(
            command,
            cwd=tool.module_directory,
            env=os.environ | {"CGO_ENABLED": "0", "GOWORK": "off"},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # If this process is killed the compiler continues, and holds the lock until it ends.
            pass_fds=[lock],
        )
    _await_compiler(compiler, tool, say, heartbeat_seconds)
    if compiler.returncode != 0:
        raise BuildFailed(
            f"Building {tool.name} {tool.version} failed (`go build` in {tool.module_directory}"
            f" exited with {compiler.returncode}). The end:\n{readiness.last_lines(output)}"
        )


def _await_compiler(
    compiler: subprocess.Popen[bytes], tool: Tool, say: Say, heartbeat_seconds: float
) -> None:
    started = time.monotonic()
    try:
        while True:
            try:
                compiler.wait(heartbeat_seconds)
                return
            except subprocess.TimeoutExpired:
                say(f"{tool.name}: still building after {time.monotonic() - started:.0f}s")
    except BaseException:
        os.killpg(compiler.pid, signal.SIGKILL)
        compiler.wait()
        raise


def _check_version(tool: Tool, program: Path) -> None:
    expected = tool.version.removeprefix("v")
    answer = subprocess.run(_version_command(tool, program), capture_output=True, text=True)
    if answer.returncode != 0 or _version_in(tool, answer.stdout) != expected:
        raise BuildFailed(
            f"{tool.name} was built but does not report version {expected}:"
            f" {(answer.stdout + answer.stderr).strip()!r}"
        )


def _version_command(tool: Tool, program: Path) -> list[str]:
    if tool.version_arguments:
        return [str(program), *tool.version_arguments]
    return ["go", "version", "-m", str(program)]


def _version_in(tool: Tool, answer: str) -> str | None:
    if tool.version_arguments:
        return reported_version(answer)
    return reported_version(answer.partition(f"\t{tool.requirement}\t")[2])
