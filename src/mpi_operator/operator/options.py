"""The flags of `mpi-operator`: one table, from which come the parser, `--help` and the reference.

Names are those of the Go operator where they mean the same, and as there one dash is as good as
two. What its flags say about client-side limits and about klog means nothing here: such a flag is
taken, so that an existing Deployment starts, and a warning says that it has no effect.
"""

import argparse
import os
import platform
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn

from mpi_operator.api import types
from mpi_operator.kube import config
from mpi_operator.kube.config.server import parse_server

from .exit_codes import MEANINGS, SECOND_SIGNAL, ExitCode
from .log_format import Format, Level

PROGRAM = "mpi-operator"


@dataclass(frozen=True)
class Options:
    """What the person who starts the operator wants."""

    master: str = ""
    kubeconfig: Path | None = None
    namespaces: tuple[str, ...] = ("",)  # "" is all of them
    lock_namespace: str = "mpi-operator"
    gang_scheduler: str = ""
    cluster_domain: str = ""
    threadiness: int = 8
    write_concurrency: int = 64
    health_port: int = 8080
    monitoring_port: int = 0
    log_level: Level = Level.INFO
    log_format: Format = Format.JSON
    without_effect: tuple[str, ...] = ()  # flags that were given and do nothing


@dataclass(frozen=True)
class Flag:
    """One row of the table."""

    name: str
    group: str
    value: str
    meaning: str
    default: str
    parse: Callable[[str], Any]
    field: str
    aliases: tuple[str, ...] = ()
    is_list: bool = False


@dataclass(frozen=True)
class Ignored:
    """A flag of the Go operator that has no effect here, and why."""

    name: str
    why: str
    is_switch: bool = field(default=False, kw_only=True)


def _server(text: str) -> str:
    try:
        return parse_server(text, "it") if text else ""
    except config.ConfigError as error:
        raise ValueError(str(error).removeprefix("it: ")) from None


def _path(text: str) -> Path | None:
    return Path(text) if text else None


def _namespace(text: str) -> str:
    if not re.fullmatch(_LABEL, text):
        raise ValueError(
            f"{text!r} cannot be the name of a namespace; expected a-z, 0-9 and -, at most 63"
        )
    return text


def _namespaces(text: str) -> tuple[str, ...]:
    """One or several, by comma. None at all is a value too: it says all of them."""
    return tuple(_namespace(name) for part in text.split(",") if (name := part.strip()))


def _scheduler(text: str) -> str:
    if text and not _is_dns_name(text):
        raise ValueError(
            f"{text!r} cannot be the name of a scheduler; expected volcano, or the name under "
            "which the coscheduling scheduler runs"
        )
    return text


def _domain(text: str) -> str:
    if text and not _is_dns_name(text):
        raise ValueError(
            f"{text!r} is not a DNS name; expected one like cluster.local, in small letters and "
            "without a dot at either end"
        )
    return text


_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_DNS_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")


def _is_dns_name(text: str) -> bool:
    return len(text) <= 253 and _DNS_NAME.fullmatch(text) is not None


def _number(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch("[0-9]{1,9}", text) or not least <= int(text) <= most:
            raise ValueError(f"expected a whole number from {least} to {most}, got {text!r}")
        return int(text)

    return parse


_port = _number(0, 65535)


def _one_of(choices: type[Level] | type[Format]) -> Callable[[str], Level | Format]:
    def parse(text: str) -> Level | Format:
        if text not in list(choices):
            raise ValueError(f"expected one of {', '.join(choices)}, got {text!r}")
        return choices(text)

    return parse


_CLUSTER = "which cluster"
_JOBS = "which jobs, and how they run"
_SPEED = "how much at once"
_SIGHT = "what is seen of it"

FLAGS = (
    Flag(
        "--kubeConfig",
        _CLUSTER,
        "PATH",
        "the kubeconfig to use, whatever the variable KUBECONFIG says",
        "KUBECONFIG, else ~/.kube/config, else the pod's own account",
        _path,
        "kubeconfig",
        aliases=("--kubeconfig",),
    ),
    Flag(
        "--master",
        _CLUSTER,
        "URL",
        "the address of the API server, instead of the one in the kubeconfig",
        "as configured",
        _server,
        "master",
    ),
    Flag(
        "--lock-namespace",
        _CLUSTER,
        "NAME",
        "where the Lease is that decides who leads; the namespace must exist",
        "mpi-operator",
        _namespace,
        "lock_namespace",
    ),
    Flag(
        "--namespace",
        _JOBS,
        "NAME[,…]",
        "look after the jobs of these namespaces only; may be given several times",
        "the variable KUBEFLOW_NAMESPACE, else all",
        _namespaces,
        "namespaces",
        is_list=True,
    ),
    Flag(
        "--gang-scheduling",
        _JOBS,
        "NAME",
        "make PodGroups, so that a job starts as a whole: for volcano, or for the coscheduling "
        "scheduler of this name",
        "none are made",
        _scheduler,
        "gang_scheduler",
    ),
    Flag(
        "--cluster-domain",
        _JOBS,
        "DOMAIN",
        "write hosts with this DNS domain of the cluster at their end",
        "without",
        _domain,
        "cluster_domain",
    ),
    Flag(
        "--threadiness",
        _SPEED,
        "N",
        "jobs worked on at once; those for which that takes long do not count",
        "8",
        _number(1, 1000),
        "threadiness",
    ),
    Flag(
        "--write-concurrency",
        _SPEED,
        "N",
        "writes under way at once, over all jobs",
        "64",
        _number(1, 1000),
        "write_concurrency",
    ),
    Flag(
        "--health-port",
        _SIGHT,
        "PORT",
        "serve /healthz, /readyz and /metrics here; 0 for not at all",
        "8080",
        _port,
        "health_port",
    ),
    Flag(
        "--monitoring-port",
        _SIGHT,
        "PORT",
        "serve the same here as well; 0 for not at all",
        "0",
        _port,
        "monitoring_port",
    ),
    Flag(
        "--log-level",
        _SIGHT,
        "LEVEL",
        f"how much to tell: {', '.join(Level)}",
        "info",
        _one_of(Level),
        "log_level",
    ),
    Flag(
        "--log-format",
        _SIGHT,
        "FORMAT",
        f"one object a line, or lines for people: {', '.join(Format)}",
        "text on a terminal, else json",
        _one_of(Format),
        "log_format",
    ),
)

_NO_LIMIT = "there is no limit on our side: the API server says when it is too much, and we obey"
_NO_BUCKET = "keys are not throttled; only what failed waits, longer each time"
_NO_KLOG = "logs go to stderr in one format; say --log-level and --log-format"

IGNORED = (
    Ignored("--kube-api-qps", _NO_LIMIT),
    Ignored("--kube-api-burst", _NO_LIMIT),
    Ignored("--controller-queue-rate-limit", _NO_BUCKET),
    Ignored("--controller-queue-burst", _NO_BUCKET),
    Ignored("--v", _NO_KLOG),
    Ignored("--vmodule", _NO_KLOG),
    Ignored("--stderrthreshold", _NO_KLOG),
    Ignored("--log_backtrace_at", _NO_KLOG),
    Ignored("--log_dir", _NO_KLOG),
    Ignored("--log_file", _NO_KLOG),
    Ignored("--log_file_max_size", _NO_KLOG),
    Ignored("--add_dir_header", _NO_KLOG, is_switch=True),
    Ignored("--alsologtostderr", _NO_KLOG, is_switch=True),
    Ignored("--alsologtostderrthreshold", _NO_KLOG),
    Ignored("--legacy_stderr_threshold_behavior", _NO_KLOG, is_switch=True),
    Ignored("--logtostderr", _NO_KLOG, is_switch=True),
    Ignored("--one_output", _NO_KLOG, is_switch=True),
    Ignored("--skip_headers", _NO_KLOG, is_switch=True),
    Ignored("--skip_log_headers", _NO_KLOG, is_switch=True),
)

EXAMPLES = (
    ("mpi-operator", "all namespaces, as whom kubectl would be"),
    ("mpi-operator --namespace team-a,team-b", "the jobs of two teams"),
    ("mpi-operator --gang-scheduling volcano", "jobs start as a whole or not at all"),
)


def parse(
    arguments: Sequence[str] | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    is_terminal: bool | None = None,
) -> Options:
    """The options; SystemExit with a sentence on stderr where the flags make no sense."""
    given = sys.argv[1:] if arguments is None else arguments
    parser = _parser()
    found = vars(parser.parse_args([_with_two_dashes(each) for each in given]))
    ignored = tuple(dict.fromkeys(found.pop("without_effect", ())))
    if not found.setdefault("namespaces", _from_variable(parser, environ)):
        found["namespaces"] = ("",)
    found.setdefault("log_format", _usual_format(is_terminal))
    return Options(**found, without_effect=ignored)


def reasons(flags: Sequence[str]) -> dict[str, str]:
    """Why each of these flags has no effect."""
    return {each.name: each.why for each in IGNORED if each.name in flags}


def _with_two_dashes(argument: str) -> str:
    """Go's flag package takes one dash or two."""
    is_flag = re.match(r"-[A-Za-z]", argument) and argument != "-h"
    return f"-{argument}" if is_flag else argument


def _from_variable(parser: argparse.ArgumentParser, environ: Mapping[str, str]) -> tuple[str, ...]:
    try:
        return _namespaces(environ.get("KUBEFLOW_NAMESPACE", ""))
    except ValueError as error:
        parser.error(f"variable KUBEFLOW_NAMESPACE: {error}")


def _usual_format(is_terminal: bool | None) -> Format:
    is_terminal = sys.stderr.isatty() if is_terminal is None else is_terminal
    return Format.TEXT if is_terminal else Format.JSON


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog=PROGRAM,
        usage=f"{PROGRAM} [FLAG …]",
        description="Looks after MPIJobs: makes what each one needs, and says in its status what\n"
        "happens. One of several such processes leads, the others stand by.",
        epilog=_epilog(),
        formatter_class=_Formatter,
        add_help=False,
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
    )
    groups = {name: parser.add_argument_group(name) for name in dict.fromkeys(_groups())}
    for flag in FLAGS:
        groups[flag.group].add_argument(
            flag.name,
            *flag.aliases,
            dest=flag.field,
            metavar=flag.value,
            type=_told(flag.parse),
            action=_Collect if flag.is_list else "store",
            help=f"{flag.meaning} (default: {flag.default})",
        )
    _add_ignored(parser)
    other = parser.add_argument_group("other")
    other.add_argument("-h", "--help", action="help", help="this text")
    other.add_argument("--version", action="version", version=version(), help="what this is")
    return parser


def _groups() -> list[str]:
    return [flag.group for flag in FLAGS]


def _add_ignored(parser: argparse.ArgumentParser) -> None:
    for each in IGNORED:
        parser.add_argument(
            each.name,
            dest="without_effect",
            action=_Note,
            nargs="?" if each.is_switch else None,
            help=argparse.SUPPRESS,
        )


def _told(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """argparse shows the sentence of this error only."""

    def parse_value(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse_value


class _Collect(argparse.Action):
    """A flag that may be given several times, each time with several values; each counts once."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        before = getattr(namespace, self.dest, ())
        setattr(namespace, self.dest, tuple(dict.fromkeys((*before, *values))))


class _Note(argparse.Action):
    """A flag of which only is kept that it was given."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        before = getattr(namespace, self.dest, ())
        setattr(namespace, self.dest, (*before, self.option_strings[0]))


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=100)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        sentence = message.removeprefix("argument ")
        self.exit(ExitCode.USAGE, f"{PROGRAM}: {sentence}\nSee {PROGRAM} --help\n")


def _epilog() -> str:
    examples = "\n".join(f"  {command:<42}{meaning}" for command, meaning in EXAMPLES)
    codes = "\n".join(f"  {code:<8}{what}" for code, (what, _) in MEANINGS.items())
    ignored = "\n  ".join(each.name for each in IGNORED if each.why is not _NO_KLOG)
    return (
        f"examples:\n{examples}\n\nexit codes:\n{codes}\n"
        f"  {SECOND_SIGNAL[0]:<8}{SECOND_SIGNAL[1]}\n\n"
        "One dash is as good as two. Flags of the Go operator that mean nothing here are taken\n"
        f"and have no effect:\n  {ignored}\n"
        "and those of klog, such as --v and --alsologtostderr. A warning tells."
    )


def version() -> str:
    """The version, and what else one is asked for when something does not work."""
    return (
        f"{PROGRAM} {metadata.version('mpi-operator')}, {types.API_VERSION}, "
        f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    )
