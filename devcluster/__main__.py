"""The development cluster on the command line.

Results go to standard output and progress to standard error, so that

    KUBECONFIG=$(python -m devcluster up) && export KUBECONFIG

works, however long the first build takes. (`export KUBECONFIG=$(…)` would hide a failure.)
"""

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from devcluster import (
    binaries,
    cluster,
    containerd,
    image_store,
    images,
    locks,
    runs,
    slots,
    status,
)
from devcluster.binaries import say_to_stderr as say
from devcluster.control_plane import ControlPlane
from devcluster.process import StillAlive
from devcluster.readiness import NotReady

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

_EXAMPLES = """\
examples:
  # compile the pinned programs once (minutes)
  python -m devcluster build
  # a cluster that outlives this command: with two nodes if you are root, else without
  KUBECONFIG=$(python -m devcluster up) && export KUBECONFIG
  # another one, without nodes and with an audit log
  python -m devcluster up --name two --nodes 0 --audit
  # load an image onto its nodes
  python -m devcluster load image.tar
  python -m devcluster status -o json
  python -m devcluster down --all
  # remove clusters of dead owners and outdated programs
  python -m devcluster clean

KUBEBUILDER_ASSETS=DIR uses the programs in DIR and builds none.
"""
_ERRORS = (
    binaries.CannotBuild,
    binaries.BuildFailed,
    NotReady,
    StillAlive,
    runs.NameTaken,
    runs.BadName,
    slots.NoSlot,
    images.BadArchive,
    containerd.ImportFailed,
    cluster.NoNodes,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.command(options)
        return code
    except _ERRORS as error:
        say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        say("Interrupted. Everything that this command started has been stopped.")
        return 130


def build(options: argparse.Namespace) -> int:
    """Compile the missing programs; print the paths of all."""
    try:
        programs = binaries.provide(_programs(_possible(options)))
    except binaries.CannotBuild as error:
        if not options.if_possible:
            raise
        say(f"Not built: {error}")
        return 0
    for path in programs.values():
        print(path)
    return 0


def up(options: argparse.Namespace) -> int:
    """Start a cluster, or its dead components; print the path of its kubeconfig."""
    with _exclusive(options.name):
        started = cluster.adopt(options.name)
        if started is None:
            started = _start(options)
        else:
            _report_revival(options.name, started.revive())
            _report_ignored(options)
        path = started.kubeconfig()
        started.detach()
    print(path)
    return 0


def load(options: argparse.Namespace) -> int:
    """Load images onto the nodes of a cluster."""
    with _exclusive(options.name):
        target = cluster.adopt(options.name)
        if target is None:
            say(f"{options.name}: not up{_others()}")
            return 1
        try:
            cluster.load(target, options.archives)
        finally:
            target.detach()
    return 0


def down(options: argparse.Namespace) -> int:
    """Take a cluster down, if it is up."""
    names = [directory.name for directory in runs.detached()] if options.all else [options.name]
    for name in names:
        _take_down(name)
    if not names:
        say("No cluster is up.")
    return 0


def show_status(options: argparse.Namespace) -> int:
    """Print the clusters that are up; exit code 1 if there are none."""
    found = [status.of(directory) for directory in runs.detached()]
    if options.output == "json":
        print(json.dumps(found, indent=2))
    elif found:
        print(status.table(found))
    else:
        say("No cluster is up. Start one: make cluster-up, or python -m devcluster up")
    return 0 if found else 1


def clean(options: argparse.Namespace) -> int:
    """Remove clusters of dead owners, and outdated programs."""
    for name in runs.reap():
        say(f"Removed cluster {name}: its owner is dead.")
    builds = binaries.cached() if options.binaries else binaries.outdated()
    stores = image_store.unused() if options.images else []
    for path in (*builds, *stores):
        say(f"Removed {path}.")
        shutil.rmtree(path)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m devcluster",
        description="A real Kubernetes cluster on this machine, with or without nodes.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_build(commands)
    _add_up(commands)
    _add_load(commands)
    _add_down(commands)
    _add_status(commands)
    _add_clean(commands)
    return parser


def _add_build(commands: "Commands") -> None:
    command = commands.add_parser("build", help="Compile the pinned programs")
    command.add_argument(
        "programs",
        nargs="*",
        type=_program,
        metavar="PROGRAM",
        help=f"A program ({', '.join(binaries.TOOLS)}) or a set of them"
        f" ({', '.join(binaries.USES)}); default: control-plane",
    )
    command.add_argument(
        "--if-possible",
        action="store_true",
        help="Exit with 0 if this machine cannot build, and print why",
    )
    command.set_defaults(command=build)


def _add_up(commands: "Commands") -> None:
    command = commands.add_parser("up", help="Start a cluster, unless it is up")
    _add_name(command)
    command.add_argument(
        "--nodes",
        type=int,
        metavar="N",
        help="Number of nodes; default: 2 if this machine can run nodes, else 0",
    )
    command.add_argument("--audit", action="store_true", help="Write an audit log")
    command.add_argument(
        "--apiserver-arg",
        action="append",
        default=[],
        metavar="FLAG",
        help="Pass a flag to kube-apiserver, such as --apiserver-arg=--v=4; repeatable",
    )
    command.set_defaults(command=up)


def _add_load(commands: "Commands") -> None:
    command = commands.add_parser("load", help="Load images onto the nodes of a cluster")
    _add_name(command)
    command.add_argument("archives", nargs="+", type=Path, metavar="ARCHIVE")
    command.set_defaults(command=load)


def _add_down(commands: "Commands") -> None:
    command = commands.add_parser("down", help="Stop a cluster and delete its data")
    _add_name(command)
    command.add_argument("--all", action="store_true", help="Stop all clusters")
    command.set_defaults(command=down)


def _add_status(commands: "Commands") -> None:
    command = commands.add_parser("status", help="Show the clusters that are up")
    command.add_argument("-o", "--output", choices=["table", "json"], default="table")
    command.set_defaults(command=show_status)


def _add_clean(commands: "Commands") -> None:
    command = commands.add_parser(
        "clean", help="Remove clusters of dead owners, and outdated programs"
    )
    command.add_argument(
        "--binaries", action="store_true", help="Also remove all compiled programs"
    )
    command.add_argument(
        "--images", action="store_true", help="Also remove the images kept for nodes"
    )
    command.set_defaults(command=clean)


def _add_name(command: argparse.ArgumentParser) -> None:
    command.add_argument("--name", default="default", help="Name of the cluster; default: default")


def _program(name: str) -> str:
    known = (*binaries.TOOLS, *binaries.USES)
    if name not in known:
        raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(known)}")
    return name


def _possible(options: argparse.Namespace) -> list[str]:
    reason = cluster.unsupported_reason()
    if not (options.if_possible and reason):
        return list(options.programs)
    useless = [use for use in ("nodes", "gang-scheduling") if use in options.programs]
    if useless:
        say(f"Not built: the programs for {' and '.join(useless)}. {reason}")
    return [name for name in options.programs if name not in useless] or ["control-plane"]


def _programs(asked: Sequence[str]) -> list[str]:
    wanted = asked or ["control-plane"]
    return [program for name in wanted for program in binaries.USES.get(name, (name,))]


def _exclusive(name: str) -> AbstractContextManager[int]:
    # Of two concurrent `up` one starts the cluster, and the other finds it running.
    lock = runs.root() / f".{runs.checked_name(name)}.lock"
    lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return locks.held(lock, on_wait=lambda: say(f"{name}: waiting for another command"))


def _start(options: argparse.Namespace) -> ControlPlane:
    nodes = _nodes_for(options)
    say(f"{options.name}: starting, with {nodes or 'no'} nodes")
    started = cluster.new(
        nodes, name=options.name, audit=options.audit, apiserver_args=options.apiserver_arg
    )
    started.start()
    say(f"{options.name}: up at {started.url}")
    return started


def _nodes_for(options: argparse.Namespace) -> int:
    if options.nodes is not None:
        return int(options.nodes)
    reason = cluster.unsupported_reason()
    if reason:
        say(f"{options.name}: starting WITHOUT NODES, so pods stay Pending. {reason}")
    return 0 if reason else 2


def _report_revival(name: str, revived: Sequence[str]) -> None:
    say(f"{name}: {'restarted ' + ', '.join(revived) if revived else 'already up'}")


def _report_ignored(options: argparse.Namespace) -> None:
    if options.audit or options.apiserver_arg or options.nodes is not None:
        say(f"{options.name}: flags ignored, because it is up; run `down` first to change them")


def _take_down(name: str) -> None:
    with _exclusive(name):
        run = runs.adopt(name)
        if run is None:
            say(f"{name}: not up{_others()}")
        else:
            run.end()
            say(f"{name}: down, its data deleted")


def _others() -> str:
    names = ", ".join(directory.name for directory in runs.detached())
    return f"; these are up: {names} (use --name NAME)" if names else ""


if __name__ == "__main__":
    sys.exit(main())
