"""The flags of `mpi-operator`: one table generates the parser, `--help` and the reference.

Flags have the names of the Go operator's flags, and take one dash or two as there. Its flags for
client-side rate limits and klog have no meaning here: the operator accepts them, so that an
existing Deployment starts, and logs a warning.
"""

import argparse
import os
import platform
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, NoReturn

from mpi_operator import __version__
from mpi_operator.api import types
from mpi_operator.build.settings import DELIVERY_IMAGE
from mpi_operator.kube import config
from mpi_operator.kube.config.address import parse_server

from .exit_codes import MEANINGS, SECOND_SIGNAL, ExitCode
from .log_format import Format, Level

PROGRAM = "mpi-operator"


class Switch(StrEnum):
    """On or off."""

    ON = "on"
    OFF = "off"


class ResourceType(StrEnum):
    """What the processing units of v1alpha1 are."""

    GPU = "nvidia.com/gpu"
    CPU = "cpu"


@dataclass(frozen=True)
class Options:
    """The parsed flags."""

    master: str = ""
    kubeconfig: Path | None = None
    namespaces: tuple[str, ...] = ("",)  # "" means all
    lock_namespace: str = "mpi-operator"
    gang_scheduler: str = ""
    cluster_domain: str = ""
    threadiness: int = 8
    write_concurrency: int = 64
    health_port: int = 8080
    monitoring_port: int = 0
    training_operator_namespace: str = "kubeflow"  # "" means not to look for it
    webhooks: Switch = Switch.ON
    webhook_port: int = 9443
    webhook_service: str = "mpi-operator-webhook"
    webhook_cert_dir: Path | None = None
    gpus_per_node: int = 1
    processing_units_per_node: int = 1
    processing_resource_type: ResourceType = ResourceType.GPU
    kubectl_delivery_image: str = DELIVERY_IMAGE
    log_level: Level = Level.INFO
    log_format: Format = Format.JSON
    without_effect: tuple[str, ...] = ()  # flags that were given and have no effect


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


def _dns_label(text: str, kind: str) -> str:
    if not re.fullmatch(_LABEL, text):
        raise ValueError(
            f"{text!r} is not a valid {kind} name; expected at most 63 of a-z, 0-9 and -"
        )
    return text


def _namespace(text: str) -> str:
    return _dns_label(text, "namespace")


def _optional_namespace(text: str) -> str:
    return _namespace(text) if text else ""


def _namespaces(text: str) -> tuple[str, ...]:
    """Comma-separated names; empty means all namespaces."""
    return tuple(_namespace(name) for part in text.split(",") if (name := part.strip()))


def _scheduler(text: str) -> str:
    if text and not _is_dns_name(text):
        raise ValueError(
            f"{text!r} is not a valid scheduler name; expected volcano, or the name of a scheduler "
            "with the coscheduling plugin"
        )
    return text


def _service(text: str) -> str:
    return _dns_label(text, "Service")


def _image(text: str) -> str:
    if not text or re.search(r"\s", text):
        raise ValueError(f"{text!r} is not a valid image name")
    return text


def _domain(text: str) -> str:
    if text and not _is_dns_name(text):
        raise ValueError(
            f"{text!r} is not a valid DNS name; expected one such as cluster.local, in lower case "
            "and without a dot at either end"
        )
    return text


_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_DNS_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")


def _is_dns_name(text: str) -> bool:
    return len(text) <= 253 and _DNS_NAME.fullmatch(text) is not None


def _number(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch("[0-9]{1,9}", text) or not least <= int(text) <= most:
            raise ValueError(f"expected an integer from {least} to {most}, got {text!r}")
        return int(text)

    return parse


_port = _number(0, 65535)
_webhook_port = _number(1, 65535)
_units = _number(1, 1000)


def _one_of(choices: type[StrEnum]) -> Callable[[str], StrEnum]:
    def parse(text: str) -> StrEnum:
        if text not in list(choices):
            raise ValueError(f"expected one of {', '.join(choices)}, got {text!r}")
        return choices(text)

    return parse


_CLUSTER = "cluster"
_JOBS = "jobs"
_CONCURRENCY = "concurrency"
_VERSIONS = "API versions"
_OBSERVABILITY = "observability"

FLAGS = (
    Flag(
        "--kubeConfig",
        _CLUSTER,
        "PATH",
        "Use this kubeconfig instead of the one in the variable KUBECONFIG",
        "KUBECONFIG, else ~/.kube/config, else the pod's service account",
        _path,
        "kubeconfig",
        aliases=("--kubeconfig",),
    ),
    Flag(
        "--master",
        _CLUSTER,
        "URL",
        "Use the API server at this address instead of the one in the kubeconfig",
        "from the kubeconfig",
        _server,
        "master",
    ),
    Flag(
        "--lock-namespace",
        _CLUSTER,
        "NAME",
        "Hold the leader election Lease in this namespace, which must exist",
        "mpi-operator",
        _namespace,
        "lock_namespace",
    ),
    Flag(
        "--namespace",
        _JOBS,
        "NAME[,…]",
        "Run only the jobs in these namespaces; can be repeated",
        "the variable KUBEFLOW_NAMESPACE, else all namespaces",
        _namespaces,
        "namespaces",
        is_list=True,
    ),
    Flag(
        "--gang-scheduling",
        _JOBS,
        "NAME",
        "Start all pods of a job together, with this gang scheduler: volcano, or the name of a "
        "scheduler with the coscheduling plugin",
        "no gang scheduling",
        _scheduler,
        "gang_scheduler",
    ),
    Flag(
        "--cluster-domain",
        _JOBS,
        "DOMAIN",
        "Append this cluster domain to host names, such as cluster.local",
        "none",
        _domain,
        "cluster_domain",
    ),
    Flag(
        "--training-operator-namespace",
        _JOBS,
        "NAME",
        "Wait while a training-operator in this namespace runs MPIJobs; empty disables the check",
        "kubeflow",
        _optional_namespace,
        "training_operator_namespace",
    ),
    Flag(
        "--threadiness",
        _CONCURRENCY,
        "N",
        "Limit the number of concurrent reconciles, not counting slow ones",
        "8",
        _number(1, 1000),
        "threadiness",
    ),
    Flag(
        "--write-concurrency",
        _CONCURRENCY,
        "N",
        "Limit the number of concurrent writes to the API server, for all jobs together",
        "64",
        _number(1, 1000),
        "write_concurrency",
    ),
    Flag(
        "--webhooks",
        _VERSIONS,
        "MODE",
        "on: convert jobs between API versions, and check jobs when they are written; off: do "
        "neither, for a CRD that has only v2beta1",
        "on",
        _one_of(Switch),
        "webhooks",
    ),
    Flag(
        "--webhook-port",
        _VERSIONS,
        "PORT",
        "Serve the webhooks on this port, over TLS",
        "9443",
        _webhook_port,
        "webhook_port",
    ),
    Flag(
        "--webhook-service",
        _VERSIONS,
        "NAME",
        "Make the certificate of the webhooks for this Service in the lock namespace",
        "mpi-operator-webhook",
        _service,
        "webhook_service",
    ),
    Flag(
        "--webhook-cert-dir",
        _VERSIONS,
        "PATH",
        "Read tls.crt and tls.key from this directory, such as a mounted Secret of cert-manager; "
        "the operator then leaves each caBundle to cert-manager",
        "the operator makes its own certificate",
        _path,
        "webhook_cert_dir",
    ),
    Flag(
        "--gpus-per-node",
        _VERSIONS,
        "N",
        "Divide the gpus of a v1alpha1 job among workers with up to N each",
        "1",
        _units,
        "gpus_per_node",
    ),
    Flag(
        "--processing-units-per-node",
        _VERSIONS,
        "N",
        "Divide the processingUnits of a v1alpha1 job among workers with up to N each",
        "1",
        _units,
        "processing_units_per_node",
    ),
    Flag(
        "--processing-resource-type",
        _VERSIONS,
        "TYPE",
        f"Count the processingUnits of a v1alpha1 job as {' or '.join(ResourceType)}",
        "nvidia.com/gpu",
        _one_of(ResourceType),
        "processing_resource_type",
    ),
    Flag(
        "--kubectl-delivery-image",
        _VERSIONS,
        "IMAGE",
        "Copy the exec client to launchers from this image: kubectl-delivery, or a mirror of it",
        DELIVERY_IMAGE,
        _image,
        "kubectl_delivery_image",
        aliases=("--mpi-kubectl-delivery-image",),
    ),
    Flag(
        "--health-port",
        _OBSERVABILITY,
        "PORT",
        "Serve /healthz, /readyz and /metrics on this port; 0 disables it",
        "8080",
        _port,
        "health_port",
    ),
    Flag(
        "--monitoring-port",
        _OBSERVABILITY,
        "PORT",
        "Serve the same endpoints on this port as well; 0 disables it",
        "0",
        _port,
        "monitoring_port",
    ),
    Flag(
        "--log-level",
        _OBSERVABILITY,
        "LEVEL",
        f"Log messages of this level and above: {', '.join(Level)}",
        "info",
        _one_of(Level),
        "log_level",
    ),
    Flag(
        "--log-format",
        _OBSERVABILITY,
        "FORMAT",
        f"Log in this format: {', '.join(Format)}",
        "text on a terminal, else json",
        _one_of(Format),
        "log_format",
    ),
)

_NO_LIMIT = "The client has no rate limit; it obeys the API server's priority and fairness"
_NO_BUCKET = "The queue has no rate limit; only failed reconciles are delayed, with a back-off"
_NO_KLOG = "Logs go to stderr; use --log-level and --log-format"

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
    ("mpi-operator", "Run all jobs, with the credentials of kubectl"),
    ("mpi-operator --namespace team-a,team-b", "Run the jobs of two teams"),
    ("mpi-operator --gang-scheduling volcano", "Start all pods of a job together"),
    ("mpi-operator migrate-storage", "Rewrite all stored jobs in v2beta1"),
)


def parse(
    arguments: Sequence[str] | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    is_terminal: bool | None = None,
) -> Options:
    """The options; SystemExit with an error on stderr if the flags are invalid."""
    given = sys.argv[1:] if arguments is None else arguments
    parser = _parser()
    found = vars(parser.parse_args([_with_two_dashes(each) for each in given]))
    ignored = tuple(dict.fromkeys(found.pop("without_effect", ())))
    if not found.setdefault("namespaces", _from_variable(parser, environ)):
        found["namespaces"] = ("",)
    found.setdefault("log_format", _default_format(is_terminal))
    return Options(**found, without_effect=ignored)


def reasons(flags: Sequence[str]) -> dict[str, str]:
    """Why each of these flags has no effect."""
    return {each.name: each.why for each in IGNORED if each.name in flags}


def _with_two_dashes(argument: str) -> str:
    """The argument as argparse wants it; Go's flag package accepts one dash or two."""
    is_flag = re.match(r"-[A-Za-z]", argument) and argument != "-h"
    return f"-{argument}" if is_flag else argument


def _from_variable(parser: argparse.ArgumentParser, environ: Mapping[str, str]) -> tuple[str, ...]:
    try:
        return _namespaces(environ.get("KUBEFLOW_NAMESPACE", ""))
    except ValueError as error:
        parser.error(f"variable KUBEFLOW_NAMESPACE: {error}")


def _default_format(is_terminal: bool | None) -> Format:
    is_terminal = sys.stderr.isatty() if is_terminal is None else is_terminal
    return Format.TEXT if is_terminal else Format.JSON


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog=PROGRAM,
        usage=f"{PROGRAM} [FLAG …]",
        description="Run MPIJobs on Kubernetes. If several mpi-operator processes run, one leads\n"
        "and the others stand by.",
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
            type=_with_message(flag.parse),
            action=_Collect if flag.is_list else "store",
            help=f"{flag.meaning} (default: {flag.default})",
        )
    _add_ignored(parser)
    other = parser.add_argument_group("other")
    other.add_argument("-h", "--help", action="help", help="Show this help")
    other.add_argument("--version", action="version", version=version(), help="Show the version")
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


def _with_message(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """The parser, raising the only error whose message argparse shows."""

    def parse_value(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse_value


class _Collect(argparse.Action):
    """A flag that may be repeated, each time with several values; duplicates are dropped."""

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
    """A flag whose value is ignored; only its name is kept."""

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
        message = message.removeprefix("argument ")
        self.exit(ExitCode.USAGE, f"{PROGRAM}: {message}\nRun {PROGRAM} --help for all flags\n")


def _epilog() -> str:
    examples = "\n".join(f"  {command:<42}{meaning}" for command, meaning in EXAMPLES)
    codes = "\n".join(f"  {code:<8}{what}" for code, (what, _) in MEANINGS.items())
    ignored = "\n  ".join(each.name for each in IGNORED if each.why is not _NO_KLOG)
    return (
        f"examples:\n{examples}\n\nexit codes:\n{codes}\n"
        f"  {SECOND_SIGNAL[0]:<8}{SECOND_SIGNAL[1]}\n\n"
        "One dash works like two. These flags of the Go operator are accepted with a warning and\n"
        f"have no effect:\n  {ignored}\n  and those of klog, such as --v and --alsologtostderr"
    )


def version() -> str:
    """The version, with what a bug report needs."""
    return (
        f"{PROGRAM} {__version__}, {types.API_VERSION}, "
        f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    )
