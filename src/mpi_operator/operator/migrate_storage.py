"""`mpi-operator migrate-storage`: an administrator's command, run with their own credentials."""

import argparse
import asyncio
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from mpi_operator.api.types import VERSION
from mpi_operator.kube import config, errors
from mpi_operator.kube.http import HttpClient

from .exit_codes import ExitCode
from .storage_migration import PAGE_SIZE, CannotMigrate, Progress, Unfinished, jobs_of, migrate

COMMAND = "migrate-storage"
_PROGRAM = f"mpi-operator {COMMAND}"
_MOST_SHOWN = 20
DESCRIPTION = (
    "Rewrite all stored MPIJobs in one API version, and record that in the CRD. It does not "
    "disturb jobs, and can be interrupted and repeated. Your account needs list and patch for "
    "mpijobs; get for customresourcedefinitions, and patch if the storage version changes; and "
    "patch for customresourcedefinitions/status."
)
# Flag, value, meaning.
FLAGS = (
    ("--to", "VERSION", "Store jobs in this version; v1 before you go back to training-operator"),
    ("--kubeconfig", "PATH", "Use this kubeconfig instead of the one in the variable KUBECONFIG"),
    ("--page-size", "N", "Read this many jobs at a time"),
)
DEFAULTS = {
    "--to": VERSION,
    "--kubeconfig": "KUBECONFIG, else ~/.kube/config, else the pod's service account",
    "--page-size": str(PAGE_SIZE),
}


def main(arguments: Sequence[str]) -> int:
    """Run the command; the exit code is that of `mpi-operator`."""
    options = _parser().parse_args(arguments)
    try:
        progress = asyncio.run(_run(options.to, options.kubeconfig, options.page_size))
    except KeyboardInterrupt:
        return _failed(128 + 2, "interrupted; run the command again to continue")
    except config.ConfigError as error:
        return _failed(ExitCode.BAD_CONFIGURATION, str(error))
    except (CannotMigrate, errors.NotFound) as error:
        return _failed(ExitCode.KIND_MISSING, str(error))
    except (errors.Forbidden, errors.Unauthorized) as error:
        return _failed(ExitCode.FORBIDDEN, str(error))
    except (Unfinished, errors.KubeError, TimeoutError) as error:
        why = error or "the API server does not answer"
        return _failed(ExitCode.BUG, f"{why}; run the command again")
    return _reported(progress)


async def _run(version: str, kubeconfig: Path | None, page_size: int) -> Progress:
    async with HttpClient(config.load(kubeconfig=kubeconfig)) as client:
        return await migrate(client, version, _say, page_size=page_size)


def _reported(progress: Progress) -> int:
    if not progress.failed:
        return 0
    for job, why in sorted(progress.failed.items())[:_MOST_SHOWN]:
        _complain(f"MPIJob {job} was not written: {why}")
    count = len(progress.failed)
    were, them = ("was", "it") if count == 1 else ("were", "them")
    return _failed(
        ExitCode.BUG,
        f"{jobs_of(count)} {were} not written. Correct or delete {them} and run the command again",
    )


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _failed(code: int, message: str) -> int:
    _complain(message)
    return code


def _complain(message: str) -> None:
    sys.stderr.write(f"{_PROGRAM}: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=_PROGRAM, description=DESCRIPTION, allow_abbrev=False)
    kinds: dict[str, Callable[[str], object]] = {"--kubeconfig": Path, "--page-size": _page_size}
    values = {"--to": VERSION, "--page-size": PAGE_SIZE}
    for flag, value, meaning in FLAGS:
        parser.add_argument(
            flag,
            metavar=value,
            type=kinds.get(flag, str),
            default=values.get(flag),
            help=f"{meaning} (default: {DEFAULTS[flag]})",
        )
    return parser


def _page_size(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 5000:
        raise argparse.ArgumentTypeError(f"expected an integer from 1 to 5000, got {text!r}")
    return int(text)
