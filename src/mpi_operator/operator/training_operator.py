"""Whether a training-operator runs MPIJobs in this cluster.

It knows nothing of our Lease, and its own is optional. Two operators on one job would both create
its pods, so ours waits while a pod of it runs, and steps aside when one appears. Its pods are
recognised by the label of its manifests, in one namespace only: a user who can create pods
elsewhere must not be able to stop the operator. Reading them needs no permission beyond those for
the pods of jobs.
"""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from typing import NoReturn

from mpi_operator.kube import errors
from mpi_operator.kube.client import Client, Selector
from mpi_operator.kube.resources import PODS, Manifest

from .exit_codes import Exit, ExitCode
from .health import Health

logger = logging.getLogger(__name__)

LABEL = "control-plane=kubeflow-training-operator"
ADVICE = (
    "scale its Deployment to 0, or give it --enable-scheme for every kind but mpijob, such as "
    "--enable-scheme=pytorchjob --enable-scheme=tfjob"
)
FLAG = "--training-operator-namespace"
_FOUND = "training-operator runs MPIJobs; only one operator may"
_HIDDEN = "Cannot check whether training-operator runs MPIJobs"
_KIND = "mpijob"
_SECONDS = 5.0
_SECONDS_LATER = 30.0


async def wait_until_none(
    client: Client, where: str, namespaces: Sequence[str], health: Health, seconds: float = _SECONDS
) -> None:
    """Return once no training-operator in a namespace runs MPIJobs."""
    try:
        while rival := await find(client, where, namespaces):
            reason = f"training-operator {rival} runs MPIJobs: {ADVICE}"
            if reason != health.waiting_for:
                health.waiting_for = reason
                logger.warning(_FOUND, extra={"pod": rival, "advice": ADVICE})
            await asyncio.sleep(seconds)
    except errors.Forbidden as error:  # an operator for named namespaces
        advice = (
            f"allow the operator to list pods in namespace {where}, or disable the check with "
            f"{FLAG}="
        )
        logger.warning(_HIDDEN, extra={"error": str(error), "advice": advice})
    health.waiting_for = ""


async def exit_on_one(
    client: Client, where: str, namespaces: Sequence[str], seconds: float = _SECONDS_LATER
) -> NoReturn:
    """Raise Exit as soon as a training-operator runs MPIJobs."""
    while True:
        await asyncio.sleep(seconds)
        try:
            rival = await find(client, where, namespaces)
        except errors.Forbidden:
            await asyncio.Event().wait()  # for ever: `wait_until_none` has said so
        except errors.KubeError:
            continue  # the watches report it if that lasts
        if rival:
            raise Exit(ExitCode.TRAINING_OPERATOR, _FOUND, pod=rival, advice=ADVICE)


async def find(client: Client, where: str, namespaces: Sequence[str]) -> str:
    """A pod of training-operator that runs MPIJobs of these namespaces; empty if there is none."""
    pods = (await client.list(PODS, where, Selector(labels=LABEL))).items if where else []
    rivals = (pod["metadata"] for pod in pods if runs_mpijobs(pod, namespaces))
    return next((f"{where}/{each['name']}" for each in rivals), "")


def runs_mpijobs(pod: Manifest, namespaces: Sequence[str]) -> bool:
    """Whether a pod of training-operator runs MPIJobs of these namespaces, now or in a moment."""
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return False
    words = [word for each in pod["spec"]["containers"] for word in _words(each)]
    kinds = {kind.lower() for kind in _values(words, "enable-scheme")}
    if kinds and _KIND not in kinds:
        return False
    [*_, only] = ["", *_variable(pod), *_values(words, "namespace")]
    return not only or only in namespaces or "" in namespaces


def _words(container: Manifest) -> list[str]:
    return [*(container.get("command") or ()), *(container.get("args") or ())]


def _values(words: Sequence[str], flag: str) -> Iterator[str]:
    """The values of a flag, as Go's flag package reads them: with one dash or two."""
    for word, following in zip(words, [*words[1:], ""], strict=True):
        name, has_value, value = word.partition("=")
        if name in (f"-{flag}", f"--{flag}"):
            yield value if has_value else following


def _variable(pod: Manifest) -> Iterator[str]:
    """The namespace in the variable that is the default of its flag."""
    for container in pod["spec"]["containers"]:
        for variable in container.get("env") or ():
            if variable["name"] == "KUBEFLOW_NAMESPACE":
                yield variable.get("value") or ""
