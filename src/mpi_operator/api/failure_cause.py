"""Why a job failed, in one sentence, from the last lines of its launcher.

An MPI ends a failed job with a banner about its own state. The reason is above it: an exception, a
signal, a program that does not exist. Each `_…` below finds one kind of reason; the first one that
finds something is right. `Banner` finds the rank and the host, to put behind it.
"""

import re
import signal
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

_MAX_LENGTH = 240


class Failure(NamedTuple):
    """What is known about a launcher that failed."""

    lines: Sequence[str]
    """The last lines of its output, and of its ranks."""
    exit_code: int
    slots: int | None = None
    """How many ranks the workers of the job have room for."""
    hosts: Sequence[str] = ()
    """The host of each rank, if ranks are placed in the order of the hostfile."""
    oom_kills: int | None = None
    """How many processes of the machine were killed for lack of memory meanwhile, if known."""
    rank: str = ""
    """The rank that failed first, if the MPI has said so apart from these lines."""
    worker: str = ""
    """How a worker had failed before the launcher did, if one had."""


class Banner(NamedTuple):
    """What an MPI says about the process that ended the job; empty if it does not say."""

    rank: str = ""
    host: str = ""
    exit_code: str = ""
    signal: str = ""

    @property
    def where(self) -> str:
        rank = f"rank {self.rank}" if self.rank else ""
        host = f"on {self.host.partition('.')[0]}" if self.host else ""
        return " ".join(filter(None, (rank, host)))


def failure_cause(failure: Failure) -> str:
    """One sentence without a full stop; "" if the lines say nothing."""
    text = "\n".join(failure.lines).replace("\0", "")  # PRRTE ends a banner with one
    banner = _located(_banner(text) or Banner(failure.rank), failure.hosts)
    for find in _REASONS:
        if reason := find(text, banner, failure):
            short = reason if len(reason) <= _MAX_LENGTH else f"{reason[: _MAX_LENGTH - 1]}…"
            return f"{short} ({banner.where})" if banner.where else short
    return ""


# Each with the named groups of `Banner`. The one that comes first in the text is about the process
# that failed first.
_BANNERS = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        # Open MPI
        r"process rank (?P<rank>\d+) with PID \S+ on node (?P<host>\S+)\s+exited\s+on\s+"
        r"signal\s+(?P<signal>\d+)",
        r"^ *Process name: \[\S+,(?P<rank>\d+)\]\s*Exit code: *(?P<exit_code>\d+)",
        r"process rank (?P<rank>\d+) with PID \S+ on node (?P<host>\S+)\s+calling",
        r"Node: (?P<host>\S+)\s+while attempting to start process rank (?P<rank>\d+)",
        # Intel MPI
        r"^= +RANK (?P<rank>\d+) PID \S+ RUNNING AT (?P<host>\S+)\n"
        r"= +KILLED BY SIGNAL: (?P<signal>\d+)",
        r"^= +RANK (?P<rank>\d+) PID \S+ RUNNING AT (?P<host>\S+)\n"
        r"= +EXIT(?:ED WITH)? (?:STATUS|CODE): (?P<exit_code>\d+)",
        # Both that are made of Hydra
        r"application called MPI_Abort\([^)]*\) - process (?P<rank>\d+)",
        r"^\[proxy:\S*?@(?P<host>[^\]\s]+)\][^\n]*execvp error",
        # MPICH prints this banner about signals only, whose numbers it calls exit codes
        r"^= +PID \S+ RUNNING AT (?P<host>\S+)\n= +EXIT CODE: (?P<signal>\d+)$",
    )
)


def _banner(text: str) -> Banner | None:
    found = [match for pattern in _BANNERS if (match := pattern.search(text))]
    if not found:
        return None
    facts: dict[str, str] = {}
    for match in sorted(found, key=re.Match.start):
        facts = {name: value for name, value in match.groupdict().items() if value} | facts
    return Banner(**facts)


def _located(banner: Banner, hosts: Sequence[str]) -> Banner:
    """The banner with rank and host: Open MPI often names only the rank, MPICH only the host.

    Where pods have no host names of their own, Open MPI names the machine.
    """
    host = banner.host.partition(".")[0]
    if banner.rank and host not in hosts and int(banner.rank) < len(hosts):
        return banner._replace(host=hosts[int(banner.rank)])
    if host and not banner.rank and list(hosts).count(host) == 1:
        return banner._replace(rank=str(list(hosts).index(host)))
    return banner


_TRACEBACK = re.compile(r"^[\s|+]*(?:Exception Group )?Traceback \(most recent call last\):")
_EXCEPTION = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?::.*)?")
_ERROR_IN_STACK = re.compile(r"\w+\(\d+\)\.*: *(.*)")
# Raised by ranks whose peers are gone: if there is another exception, that one came first.
_CONSEQUENCES = ("mpi4py.MPI.Exception", "ConnectionResetError", "BrokenPipeError", "EOFError")


def _exception(text: str, banner: Banner, failure: Failure) -> str:
    found = [*_exceptions(text.splitlines())]
    causes = [each for each in found if not each.startswith(_CONSEQUENCES)]
    return (causes or found or [""])[-1]


def _exceptions(lines: Sequence[str]) -> Iterator[str]:
    """The line that ends each traceback; tracebacks of several ranks may be interleaved."""
    is_inside = False
    for index, line in enumerate(lines):
        if _TRACEBACK.match(line):
            is_inside = True
        elif is_inside:
            bare = line.removeprefix("  | ")
            if bare[:1].strip() and _EXCEPTION.fullmatch(bare):
                is_inside = False
                yield _with_detail(bare, lines[index + 1 :])


def _with_detail(exception: str, following: Sequence[str]) -> str:
    """An exception with what comes after the colon at its end.

    That of MPICH announces a stack of errors, the last of which is the reason.
    """
    if not exception.endswith(":"):
        return exception
    stack = [match[1] for match in takewhile(bool, map(_ERROR_IN_STACK.match, following)) if match]
    if stack:
        return f"{exception.partition(':')[0]}: {stack[-1]}"
    return f"{exception} {following[0].strip()}" if following else exception


def _first(*patterns: str, form: str = "{}") -> Callable[[str, Banner, Failure], str]:
    """Finds the first match of any pattern, and puts its groups into a form."""
    compiled = [re.compile(pattern, re.MULTILINE) for pattern in patterns]

    def find(text: str, banner: Banner, failure: Failure) -> str:
        matches = (match for pattern in compiled if (match := pattern.search(text)))
        return next((form.format(*match.groups()) for match in matches), "")

    return find


_syntax_error = _first(r"^((?:SyntaxError|IndentationError|TabError): .*)")
_missing_script = _first(
    r"can't open file '?(.*?)'?: \[Errno 2\]", form="No such file or directory: {}"
)
_missing_main_module = _first(r"^\S*python\S*: (No module named \S+)")
_missing_executable = _first(
    r"execvp error on file (.*?) \(No such file or directory\)", form="Executable not found: {}"
)
_no_permission = _first(
    r"execvp error on file (.*?) \(Permission denied\)", form="No permission to execute {}"
)
_no_executable = _first(  # Open MPI does not say which of the two
    r"unable to launch the specified application as it could not\s+access\s+(?:or execute )?"
    r"an executable:\s+Executable: *(.*)",
    r"unable to find the specified executable file(?s:.{1,400}?)Executable: *(.*)",
    form="Executable not found, or not executable: {}",
)
_not_started = _first(  # a directory, or a file that is no program
    r"failed\.  PRTE checks many things(?s:.{1,600}?)Application name: *(.*)\s+Error: *(.*)",
    form="Cannot execute {}: {}",
)
_no_program = _first(
    r"^No executable was specified on the \S+ command line",
    r"^\[mpiexec@\S+\].*: No executable provided",
    form="mpirun was given no program",
)
_no_hostfile = _first(
    r"was unable to open the hostfile:\s+(\S+)",
    r"^\[mpiexec@\S+\].*: unable to open host file: (.*)",
    r"^\[mpiexec@\S+\] HYD_hostfile\w+ \(\S+\): (.*) no such file",  # Intel MPI
    form="Cannot open the hostfile {}",
)
_silent_daemon = _first(
    r"daemon failed to report back(?s:.{1,600}?)Remote host: *([^\s.]+)",
    form="The daemon of mpirun on {} did not report back",
)
# The function that failed first comes first; those that have called it follow.
_hydra_error = _first(r"^\[mpiexec@\S+\] \w+ \(\S+:\d+\): (.*)")
_missing_command = _first(
    r"^\S*sh: (?:line )?\d+: (.*?): (?:command )?not found$", form="Command not found: {}"
)
_unknown_option = _first(
    r"unrecognized option was included on the mpirun command line:\s+Option: *(.*)",
    r"unrecognized argument (.*)",
    form="mpirun does not know the option {}",
)
_unresolved_host = _first(r"(Could not resolve hostname .*)")
_abort = _first(
    r"MPI_ABORT was invoked on rank \d+ in communicator(?s:.{1,200}?)[Ee]rrorcode:? *(-?\d+)",
    r"application called MPI_Abort\([^,]*, *(-?\d+)\)",
    form="MPI_Abort with code {}",
)


def _unknown_host(text: str, banner: Banner, failure: Failure) -> str:
    """Workers that have failed have no address any more."""
    unresolved = _unresolved_host(text, banner, failure)
    return unresolved and (failure.worker or unresolved)


def _dead_worker(text: str, banner: Banner, failure: Failure) -> str:
    """The last resort before what an MPI says about the connection that it lost."""
    return failure.worker


def _too_many_ranks(text: str, banner: Banner, failure: Failure) -> str:
    found = re.search(r"not enough slots available in the system to satisfy the (\d+)", text)
    if found is None:
        return ""
    slots = f"{failure.slots} slots" if failure.slots else "too few slots"
    return f"{found[1]} ranks requested, but the workers have {slots}"


def _signal(text: str, banner: Banner, failure: Failure) -> str:
    number = int(banner.signal or 0)
    if not number:
        return ""
    if number == signal.SIGKILL:
        return f"Killed by SIGKILL{_memory(failure.oom_kills)}"
    return f"Killed by {_signal_name(number)}, {(signal.strsignal(number) or '').lower()}"


def _memory(oom_kills: int | None) -> str:
    if oom_kills is None:
        return ", perhaps out of memory"
    return ", out of memory" if oom_kills else ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


_COMPLAINT = re.compile(
    r"error|fail|cannot|can't|could not|not found|no such|denied|invalid|unknown|unrecognized"
    r"|usage|abort|fatal|refused|unable|exception|missing|panic|killed|resolve",
    re.IGNORECASE,
)
# Lines of the MPIs that say that a job has failed, not why.
_NOISE = re.compile(
    r"^[\s=*#-]*$|^=|^ *(?:Process name|Exit code|Node|Executable|PID|HNP daemon|Remote daemon):"
    r"|exited with non-zero status|thus causing the job|prterun noticed|prterun detected"
    r"|^mpirun (?:detected|noticed) that|^the job to be terminated\. The first process"
    r"|[Pp]rimary job +terminated|non-zero exit code|job has been aborted|lost communication"
    r"|^Intel\(R\)|YOUR APPLICATION TERMINATED|Please refer to|www\.|https?://"
    r"|^\[(?:mpiexec|proxy|prterun)\S*\]|^\[\S+\] PRTE ERROR|^NOTE: invoking MPI_ABORT"
    r"|^\[\S+\] \[\S+\] errmgr:dvm: "
    r"|You may or may not see|exactly when Open MPI kills|calling$|^.abort.\. This may"
    r"|^terminated by signals"
)


def _last_complaint(text: str, banner: Banner, failure: Failure) -> str:
    line = _last_line(text)
    return line if _COMPLAINT.search(line) else ""


def _exit_code(text: str, banner: Banner, failure: Failure) -> str:
    code = banner.exit_code or str(failure.exit_code)
    line = _last_line(text)
    after = f"after the line: {line}" if line else "nothing was printed"
    return f"exit code {_with_signal(int(code))}, {after}"


def _with_signal(code: int) -> str:
    """An exit code; shells report that a signal ended a program by a code above 128."""
    by_signal = code - 128 in set(signal.Signals)
    return f"{code} ({_signal_name(code - 128)})" if by_signal else str(code)


def _last_line(text: str) -> str:
    said = (line.strip() for line in reversed(text.splitlines()) if not _NOISE.search(line))
    return next(filter(None, said), "")


_REASONS: Sequence[Callable[[str, Banner, Failure], str]] = (
    _too_many_ranks,
    _missing_executable,
    _no_permission,
    _no_executable,
    _not_started,
    _no_program,
    _no_hostfile,
    _unknown_option,
    _unknown_host,
    _exception,
    _syntax_error,
    _missing_script,
    _missing_main_module,
    _missing_command,
    _abort,
    _signal,
    _dead_worker,
    _silent_daemon,
    _last_complaint,
    _hydra_error,
    _exit_code,
)
