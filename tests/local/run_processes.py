"""The processes of runs: which there are, and what they wait for if they do not end."""

from collections.abc import Iterable
from pathlib import Path

from mpi_operator.local.kubelet.container_config import POD_VARIABLE
from mpi_operator.local.runs import run_directories
from mpi_operator.local.sandbox import process_tree
from mpi_operator.local.sandbox.process_tree import RUN_VARIABLE

_LOG_END = 2000


def marked(directory: Path) -> list[int]:
    """The processes of all runs below a directory."""
    mark = f"{RUN_VARIABLE}={directory}/".encode()
    return [pid for pid in process_tree.parents() if _has_prefix(pid, mark)]


def processes(run: run_directories.Run, pod: str) -> list[int]:
    """Of a pod of a run: other runs may have pods of that name at the same time."""
    wanted = {RUN_VARIABLE: str(run.directory), POD_VARIABLE: pod}
    return [
        pid
        for pid in process_tree.parents()
        if all(process_tree.was_started_with(pid, *each) for each in wanted.items())
    ]


def _has_prefix(pid: int, mark: bytes) -> bool:
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(variable.startswith(mark) for variable in variables)


def hang_report(pids: Iterable[int], runs: Path) -> str:
    """The processes and the ends of the logs of the runs below a directory."""
    logs = [path for path in sorted(runs.rglob("logs/*/*")) if path.is_file()]
    return "\n".join([*map(_process, pids), *map(_log, logs)])


def _process(pid: int) -> str:
    """A process with its state, and the functions of the kernel in which each thread sleeps."""
    command = _read(f"/proc/{pid}/cmdline").replace("\0", " ")
    status = dict(line.split(":\t", 1) for line in _read(f"/proc/{pid}/status").splitlines())
    facts = " ".join(f"{name}={status.get(name, '?')}" for name in ("PPid", "State", "SigBlk"))
    threads = (f"/proc/{pid}/task/{thread}/wchan" for thread in _names(f"/proc/{pid}/task"))
    return f"{pid} {facts} waits in {', '.join(map(_read, threads))}: {command}"


def _log(path: Path) -> str:
    return f"--- {path}\n{_read(str(path))[-_LOG_END:]}"


def _names(directory: str) -> list[str]:
    try:
        return sorted(entry.name for entry in Path(directory).iterdir())
    except OSError:
        return []


def _read(path: str) -> str:
    try:
        return Path(path).read_bytes().decode(errors="replace")
    except OSError:
        return ""  # it has ended meanwhile
