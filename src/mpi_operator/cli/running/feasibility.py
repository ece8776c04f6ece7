"""Whether a job can ever run on this machine: pure, but for a look at the paths of the host.

A pod that does not fit waits, as on a cluster. But this machine does not grow, so a job that asks
for more than the whole machine would wait for ever.
"""

import os
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from mpi_operator.api.types import CleanPodPolicy, MPIJob
from mpi_operator.cli.command_errors import InvalidInput
from mpi_operator.cli.job_input.references import pod_specs
from mpi_operator.cli.plain_text import printable
from mpi_operator.kube.resources import Manifest
from mpi_operator.local.kubelet import volumes
from mpi_operator.local.kubelet.capacity import GPU, Machine, requested, shown, unit_of

_IS_TYPE = {
    "Directory": Path.is_dir,
    "File": Path.is_file,
    "Socket": Path.is_socket,
    "CharDevice": Path.is_char_device,
    "BlockDevice": Path.is_block_device,
}
_SHARED = ("cpu", "memory")
_OVERSUBSCRIBE = "--oversubscribe"


class Obstacle(NamedTuple):
    """Why a job cannot run here, and the options of `mpijob run` that help."""

    message: str
    options: Sequence[str]
    workers: int = 0
    """How many workers would fit instead; 0 if fewer workers do not help."""
    instead: str = ""
    """Another option that helps as well as all of these."""


def check(jobs: Sequence[MPIJob], machine: Machine, *, oversubscribe: bool) -> None:
    """InvalidInput if a job cannot run here, or not beside the others."""
    found = [
        obstacle
        for job in jobs
        for obstacle in (*excess(job, machine, oversubscribe=oversubscribe), *unmountable(job))
    ] or [*joint_excess(jobs, machine, oversubscribe=oversubscribe)]
    if found:
        lines = "\n".join(f"  {printable(each.message)}" for each in found)
        what = "the job" if len(jobs) == 1 else "the jobs of the file"
        raise InvalidInput(
            f"{what} cannot run on this machine:\n{lines}", "\n".join(_commands(found))
        )


def _commands(found: Sequence[Obstacle]) -> Iterator[str]:
    """The commands that help, each by itself."""
    options = dict.fromkeys(option for each in found for option in each.options)
    yield f"mpijob run … {' '.join(options)}  # helps"
    excesses = [each.workers for each in found if _OVERSUBSCRIBE in each.options]
    if excesses and all(excesses):
        others = [each for each in options if each != _OVERSUBSCRIBE]
        fewer = " ".join([f"--set workers={min(excesses)}", *others])
        yield f"mpijob run … {fewer}  # helps, too"
    for option in dict.fromkeys(each.instead for each in found if each.instead):
        yield f"mpijob run … {option}  # helps, too"


def excess(job: MPIJob, machine: Machine, *, oversubscribe: bool) -> Iterator[Obstacle]:
    """What all pods of a job together request, and the machine does not have."""
    parts = requests_of(job)
    for name in dict.fromkeys(name for _, amounts in parts.values() for name in amounts):
        if oversubscribe and name in _SHARED:
            continue
        total = sum(count * amounts.get(name, 0) for count, amounts in parts.values())
        if total > machine.amount(name):
            yield Obstacle(
                _excess_message(job, name, parts, Fraction(total), machine.amount(name)),
                _options(job, name, machine.amount(name)),
                _fitting_workers(job, name, machine) if name in _SHARED else 0,
            )


def joint_excess(
    jobs: Sequence[MPIJob], machine: Machine, *, oversubscribe: bool
) -> Iterator[Obstacle]:
    """What the jobs of one file together request, so that one may wait for another for ever.

    A job waits for what others hold. Those with `cleanPodPolicy: None` never return what their
    workers hold, because their pods stay until all jobs of the run have ended.
    """
    totals = [total_of(job) for job in jobs]
    kept = [_kept_of(job) for job in jobs]
    for name in dict.fromkeys(name for total in totals for name in total):
        if oversubscribe and name in _SHARED:
            continue
        all_kept = sum(each.get(name, 0) for each in kept)
        peak = max(
            total.get(name, 0) + all_kept - own.get(name, 0)
            for total, own in zip(totals, kept, strict=True)
            if total.get(name)
        )
        if peak > machine.amount(name):
            yield _joint_obstacle(jobs, name, totals, machine.amount(name))


def _kept_of(job: MPIJob) -> dict[str, Fraction]:
    """What the pods of a job hold after its end."""
    if job.spec.run_policy.clean_pod_policy is not CleanPodPolicy.NONE:
        return {}
    count, amounts = requests_of(job).get("worker", (0, {}))
    return {name: count * size for name, size in amounts.items()}


def _joint_obstacle(
    jobs: Sequence[MPIJob],
    name: str,
    totals: Sequence[dict[str, Fraction]],
    available: Fraction,
) -> Obstacle:
    each = [
        f"{job.metadata.name} with {shown(name, total[name])}"
        for job, total in zip(jobs, totals, strict=True)
        if total.get(name)
    ]
    together = sum((total.get(name, Fraction(0)) for total in totals), Fraction(0))
    message = (
        f"the jobs together request {shown(name, together)} {unit_of(name, together)} "
        f"({', '.join(each)}), this machine has {shown(name, available)}; they run at the same "
        "time, and workers keep what they request until all jobs have ended (cleanPodPolicy None)"
    )
    one_by_one = "--set spec.runPolicy.cleanPodPolicy=Running"
    if name in _SHARED:
        return Obstacle(message, [_OVERSUBSCRIBE], instead=one_by_one)
    return Obstacle(message, [one_by_one])


def requests_of(job: MPIJob) -> dict[str, tuple[int, dict[str, Fraction]]]:
    """How many pods of each role there are, and what each of them requests."""
    counts = {"launcher": 1, "worker": job.spec.worker_count}
    try:
        return {
            role: (counts[role], requested({"spec": pod})) for role, pod in pod_specs(job).items()
        }
    except ValueError as error:  # a quantity that is none
        raise InvalidInput(f"{job.metadata.name}: {error}") from error


def total_of(job: MPIJob) -> dict[str, Fraction]:
    """What all pods of a job together request."""
    total: dict[str, Fraction] = {}
    for count, amounts in requests_of(job).values():
        for name, size in amounts.items():
            total[name] = total.get(name, Fraction(0)) + count * size
    return {name: size for name, size in total.items() if size}


def unmountable(job: MPIJob) -> Iterator[Obstacle]:
    """The volumes that no pod of this machine can mount."""
    found = {
        (volume["name"], why): None
        for pod in pod_specs(job).values()
        for volume in pod.get("volumes") or ()
        if (why := _why_unmountable(volume))
    }
    for name, why in found:
        yield Obstacle(f"{job.metadata.name}: volume {name}: {why}", [f"--volume {name}=DIR"])


def _excess_message(
    job: MPIJob,
    name: str,
    parts: dict[str, tuple[int, dict[str, Fraction]]],
    total: Fraction,
    available: Fraction,
) -> str:
    each = [
        f"{count} {role if count == 1 else role + 's'} with {shown(name, amounts[name])}"
        for role, (count, amounts) in parts.items()
        if amounts.get(name) and count
    ]
    has = f"has {shown(name, available)}" if available else "has none"
    return (
        f"{job.metadata.name} requests {shown(name, total)} {unit_of(name, total)}"
        f" ({', '.join(each)}), this machine {has}"
    )


def _options(job: MPIJob, name: str, available: Fraction) -> list[str]:
    if name in _SHARED:
        return [_OVERSUBSCRIBE]
    if name == GPU and (pods := _pods_with_gpus(job)):
        return [f"--gpus {available // pods}"]
    return [f"--set '{path}=0'" for path in _paths(job, name)]


def _pods_with_gpus(job: MPIJob) -> int:
    """How many pods `--gpus` is about; 0 if others or other containers request GPUs as well."""
    counts = {"Launcher": int(job.spec.run_launcher_as_worker), "Worker": job.spec.worker_count}
    ours = {f"spec.mpiReplicaSpecs.{role}.template.spec.containers[0]": role for role in counts}
    places = {path.partition(".resources.")[0] for path in _paths(job, GPU)}
    are_all_ours = all(counts.get(ours.get(place, "")) for place in places)
    return sum(counts.values()) if are_all_ours else 0


def _fitting_workers(job: MPIJob, name: str, machine: Machine) -> int:
    """How many workers would fit."""
    parts = requests_of(job)
    _, launcher = parts["launcher"]
    _, worker = parts.get("worker", (0, {}))
    free = machine.amount(name) - launcher.get(name, Fraction(0))
    return int(free // worker[name]) if worker.get(name) and free > 0 else 0


def _paths(job: MPIJob, name: str) -> Iterator[str]:
    """The fields that request a device."""
    for role, pod in pod_specs(job).items():
        for kind in ("initContainers", "containers"):
            for index, container in enumerate(pod.get(kind) or ()):
                for field, amounts in (container.get("resources") or {}).items():
                    if field in ("limits", "requests") and name in (amounts or {}):
                        place = f"spec.mpiReplicaSpecs.{role.title()}.template.spec"
                        yield f"{place}.{kind}[{index}].resources.{field}[{name}]"


def _why_unmountable(volume: Manifest) -> str:
    kind = volumes.kind_of(volume)
    if kind not in volumes.SUPPORTED:
        return f"{kind} is not available on this machine"
    for source in (volume.get("projected") or {}).get("sources") or ():
        inner = volumes.kind_of(source)
        if inner not in volumes.PROJECTED:
            return f"{inner} is not available on this machine"
    return _why_no_path(volume["hostPath"]) if kind == "hostPath" else ""


def _why_no_path(source: Manifest) -> str:
    path, kind = Path(source["path"]), source.get("type") or ""
    if kind.endswith("OrCreate"):
        return "" if path.exists() or _is_creatable(path) else f"cannot create {path}"
    if not path.exists():
        return f"{path} does not exist on this machine"
    if kind in _IS_TYPE and not _IS_TYPE[kind](path):
        return f"{path} is not a {kind}"
    return ""


def _is_creatable(path: Path) -> bool:
    """Whether its nearest ancestor that exists is a directory that we may write."""
    ancestor = next(each for each in path.absolute().parents if each.exists())
    return ancestor.is_dir() and os.access(ancestor, os.W_OK | os.X_OK)
