"""The images of this project: their Dockerfiles and their other inputs."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
SUITES = TRIXIE, BOOKWORM = "trixie", "bookworm"


@dataclass(frozen=True)
class Image:
    """One image. Paths are relative to the checkout."""

    name: str
    tags: tuple[str, ...]
    dockerfile: str
    usual: str
    needs: tuple[str, ...] = ()
    arguments: Mapping[str, str] = field(default_factory=dict)
    suite: str = TRIXIE
    context: str = ""
    """The build context; default: the directory of the Dockerfile."""
    inputs: tuple[str, ...] = ()
    """Globs of the files that COPY copies; default: the whole context."""
    programs: tuple[str, ...] = ()
    """Programs of the development cluster that are added to the context."""
    uses_pip: bool = False
    keeps_layers: bool = False
    """Whether layers are cached, because only the last inputs change often."""
    is_archived: bool = True
    """Whether nodes need it; the others are only used to build these."""
    is_heavy: bool = False
    """Whether it is built only for those who ask for it by name."""

    @property
    def is_released(self) -> bool:
        """Whether users need it, too, and not only tests."""
        return not self.dockerfile.startswith("tests/")

    @property
    def directory(self) -> Path:
        return CHECKOUT / (self.context or Path(self.dockerfile).parent)

    def files(self) -> list[Path]:
        """The files of this checkout that its content depends on."""
        patterns = self.inputs or ("**/*",)
        found = {path for pattern in patterns for path in self.directory.glob(pattern)}
        used = {path for path in found if path.is_file() and "__pycache__" not in path.parts}
        return sorted(used | {CHECKOUT / self.dockerfile})


def _toolchain(suite: str) -> Image:
    return Image(
        name=f"toolchain-{suite}",
        tags=(f"mpioperator/toolchain:{suite}",),
        dockerfile="deploy/images/toolchain/Dockerfile",
        arguments={"debian": suite},
        suite=suite,
        usual="40 seconds",
        is_archived=False,
    )


def _base(suite: str) -> Image:
    return Image(
        name=f"base-{suite}",
        tags=(f"mpioperator/base:{suite}",),
        dockerfile="deploy/images/base/Dockerfile",
        arguments={"debian": suite},
        suite=suite,
        needs=(f"toolchain-{suite}",),
        usual="20 seconds",
        is_archived=False,
    )


def _builder(mpi: str, tag: str, suite: str, usual: str, uses_pip: bool = False) -> Image:
    return Image(
        name=_named(f"{mpi}-builder", tag),
        tags=(f"mpioperator/{mpi}-builder:{tag}",),
        dockerfile=f"deploy/images/{mpi}/builder.Dockerfile",
        arguments={"debian": suite},
        suite=suite,
        needs=(f"toolchain-{suite}",),
        usual=usual,
        uses_pip=uses_pip,
        is_archived=False,
    )


def _runtime(mpi: str, tag: str, suite: str, needs: tuple[str, ...] = ()) -> Image:
    return Image(
        name=_named(mpi, tag),
        tags=(f"mpioperator/{mpi}:{tag}",),
        dockerfile=f"deploy/images/{mpi}/Dockerfile",
        arguments={"debian": suite},
        suite=suite,
        needs=(f"base-{suite}", *needs),
        usual="20 seconds",
        is_archived=False,
    )


def _pi(flavour: str, mpi: str, tag: str) -> Image:
    return Image(
        name=f"pi-{flavour}",
        tags=(f"mpioperator/mpi-pi:{flavour}",),
        dockerfile="examples/pi/Dockerfile",
        inputs=("pi.c", "pi.py"),
        arguments={"mpi": mpi, "tag": tag},
        needs=(_named(mpi, tag), _named(f"{mpi}-builder", tag)),
        uses_pip=True,
        usual="10 seconds",
    )


def _no_sshd(flavour: str) -> Image:
    return Image(
        name=f"pi-{flavour}-no-sshd",
        tags=(f"mpioperator/mpi-pi:{flavour}-no-sshd",),
        dockerfile="tests/cluster/no_sshd/Dockerfile",
        arguments={"flavour": flavour},
        needs=(f"pi-{flavour}",),
        usual="5 seconds",
    )


def _named(name: str, tag: str) -> str:
    return name if tag == "latest" else f"{name}-{tag}"


def _version() -> str:
    """The version of this checkout, as in the Deployment of the operator."""
    source = (CHECKOUT / "src/mpi_operator/__init__.py").read_text()
    [version] = re.findall(r'^__version__ = "(.+?)"', source, re.MULTILINE)
    return str(version)


_ALL = (
    _toolchain(TRIXIE),
    _base(TRIXIE),
    _runtime("openmpi", "latest", TRIXIE),
    _builder("openmpi", "latest", TRIXIE, "40 seconds"),
    _pi("openmpi", "openmpi", "latest"),
    _toolchain(BOOKWORM),
    _base(BOOKWORM),
    _runtime("openmpi", "4.1", BOOKWORM),
    _builder("openmpi", "4.1", BOOKWORM, "40 seconds"),
    _pi("openmpi-4", "openmpi", "4.1"),
    _runtime("mpich", "latest", TRIXIE),
    _builder("mpich", "latest", TRIXIE, "40 seconds"),
    _pi("mpich", "mpich", "latest"),
    _builder("intel", "latest", TRIXIE, "a minute", uses_pip=True),
    _runtime("intel", "latest", TRIXIE, needs=("intel-builder",)),
    _pi("intel", "intel", "latest"),
    *(_no_sshd(flavour) for flavour in ("openmpi", "openmpi-4", "mpich", "intel")),
    Image(
        name="allreduce-benchmark",
        tags=("mpioperator/allreduce-benchmark:openmpi",),
        dockerfile="examples/allreduce-benchmark/Dockerfile",
        inputs=("train.py",),
        needs=("openmpi", "toolchain-trixie"),
        uses_pip=True,
        usual="40 seconds",
    ),
    Image(
        name="elastic",
        tags=("mpioperator/elastic:openmpi",),
        dockerfile="examples/elastic/Dockerfile",
        inputs=("elastic.py", "round.py"),
        needs=("pi-openmpi",),
        usual="5 seconds",
    ),
    Image(
        name="horovod",
        tags=("mpioperator/horovod:0.28.1-tf2.13.1-cpu",),
        dockerfile="deploy/images/horovod/Dockerfile",
        suite=BOOKWORM,
        needs=("openmpi-4.1", "openmpi-builder-4.1"),
        uses_pip=True,
        keeps_layers=True,
        usual="6 minutes",
        is_archived=False,
    ),
    Image(
        name="horovod-examples",
        tags=("mpioperator/horovod-examples:0.28.1",),
        dockerfile="examples/horovod/Dockerfile",
        inputs=("*.py", "elastic/*.py"),
        suite=BOOKWORM,
        needs=("horovod",),
        usual="10 seconds",
        is_heavy=True,
    ),
    Image(
        name="tensorflow-benchmarks",
        tags=("mpioperator/tensorflow-benchmarks:latest",),
        dockerfile="examples/tensorflow-benchmarks/Dockerfile",
        inputs=("scripts/**/*.py",),
        suite=BOOKWORM,
        needs=("horovod",),
        usual="10 seconds",
        is_heavy=True,
    ),
    Image(
        name="flyte",
        tags=("mpioperator/flyte:test",),
        dockerfile="tests/peers/flyte/image/Dockerfile",
        inputs=("tasks.py", "sitecustomize.py"),
        suite=BOOKWORM,
        needs=("pi-openmpi-4-no-sshd", "toolchain-bookworm"),
        uses_pip=True,
        keeps_layers=True,
        usual="2 minutes",
    ),
    Image(
        name="mpi-operator",
        tags=(f"mpioperator/mpi-operator:{_version()}",),
        dockerfile="Dockerfile",
        context=".",
        inputs=("pyproject.toml", "README.md", "LICENSE", "constraints.txt", "src/**/*"),
        uses_pip=True,
        keeps_layers=True,
        usual="40 seconds",
    ),
    Image(
        name="kubectl-delivery",
        tags=(f"mpioperator/kubectl-delivery:{_version()}",),
        dockerfile="cmd/kubectl-delivery/Dockerfile",
        inputs=("Dockerfile",),
        programs=("kubectl-delivery",),
        usual="10 seconds",
    ),
)

IMAGES = {image.name: image for image in _ALL}


def with_needs(names: Iterable[str]) -> list[Image]:
    """These images and all that they need, dependencies first."""
    ordered: dict[str, Image] = {}

    def add(name: str) -> None:
        for need in IMAGES[name].needs:
            add(need)
        ordered.setdefault(name, IMAGES[name])

    for name in names:
        add(name)
    return list(ordered.values())


def usual() -> Iterator[str]:
    """The names of the images that are built by default."""
    return (name for name in archived() if not IMAGES[name].is_heavy)


def released() -> Iterator[str]:
    """The names of the images for users: to run, and to build their own from."""
    return (image.name for image in _ALL if image.is_released)


def archived() -> Iterator[str]:
    """The names of the images for nodes."""
    return (image.name for image in _ALL if image.is_archived)
