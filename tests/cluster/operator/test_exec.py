"""Jobs whose images have no sshd: the launcher starts ranks by exec, and may do nothing else."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePath

import pytest

from devcluster import image_builds
from devcluster.binaries import CannotBuild
from devcluster.cluster import Cluster
from mpi_operator.api.annotations import EXEC, LOST_WORKERS, SCALE_DOWN_DELAY, TRANSPORT
from mpi_operator.build import exec_shell, scripts
from mpi_operator.controller.exec_access import RBAC_FILE
from mpi_operator.kube.resources import (
    NAMESPACES,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    Manifest,
)
from tests.cluster.operator import pi as jobs
from tests.cluster.operator.conftest import RESTARTS
from tests.cluster.operator.installation import DEPLOY, Installation
from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import Flavour, Overrides, one_rank_each
from tests.cluster.operator.test_faults import (
    ENDLESS,
    LOST,
    SAFE,
    SLOW,
    asks_for_replacement,
    bind,
    started,
)
from tests.cluster.operator.test_host_network import CROWDED, saying_where
from tests.support.pods import RESTRICTED

FLAVOURS = {
    name: replace(flavour, image=f"{flavour.image}-no-sshd")
    for name, flavour in jobs.FLAVOURS.items()
}
OPEN_MPI = FLAVOURS["openmpi"]
# `make soak` wants many: a start that stumbles does so rarely.
STARTS = int(os.environ.get("MPI_OPERATOR_STARTS", "1"))
CLIENT = "/opt/kube/kubectl"
BINDING = "clusterrolebinding/mpi-operator-exec-transport"
_NOTHING = Overrides()

pytestmark = pytest.mark.usefixtures("images_without_sshd")


@pytest.fixture(scope="session")
def images_without_sshd(cluster: Cluster, images: None) -> None:
    try:
        names = [f"pi-{mpi}-no-sshd" for mpi in FLAVOURS]
        cluster.load(*image_builds.provide(names).values())
    except CannotBuild as error:
        pytest.skip(str(error))


def pi(name: str, flavour: Flavour = OPEN_MPI, overrides: Overrides = _NOTHING) -> Manifest:
    made = jobs.pi(name, flavour, overrides)
    made["metadata"]["annotations"] = {TRANSPORT: EXEC}
    return made


def running(name: str, program: list[str], flavour: Flavour = OPEN_MPI) -> Manifest:
    """A job whose ranks run this."""
    return pi(name, flavour, Overrides(launcher={"command": [*flavour.command()[:-1], *program]}))


def launching(name: str, script: str, workers: int = 1) -> Manifest:
    """A job whose launcher is a shell script."""
    launcher = {"command": ["sh", "-c", script]}
    return pi(name, overrides=Overrides(workers=workers, launcher=launcher))


@pytest.mark.parametrize("start", range(STARTS))
async def test_ranks_run_on_their_workers(
    lab: Lab, start: int, record_property: Callable[[str, object], None]
) -> None:
    for mpi, flavour in FLAVOURS.items():
        await lab.submit(pi(mpi, flavour))

    await lab.succeed_all(FLAVOURS)

    restarts = {mpi: await lab.restarts(mpi) for mpi in FLAVOURS}
    record_property(RESTARTS, restarts)
    for mpi in FLAVOURS:
        assert await lab.ranks(mpi) == one_rank_each(mpi)
        assert len(await lab.nodes(mpi)) == 2
        assert restarts[mpi] == 0
        assert "pi is about 3.14" in await lab.log(mpi)
        assert await lab.find(SECRETS, f"{mpi}-ssh") is None


async def test_ranks_run_under_pod_security_restricted_and_as_any_user(lab: Lab) -> None:
    enforce = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    await lab.client.patch(NAMESPACES, lab.namespace, enforce)
    user = RESTRICTED | {"runAsUser": 123456, "runAsGroup": 123456}
    without_sshd = Overrides(worker={"command": []})
    for mpi, flavour in FLAVOURS.items():
        job = jobs.pi_as_user(mpi, flavour, without_sshd, security=user)
        job["metadata"]["annotations"] = {TRANSPORT: EXEC}
        await lab.submit(job)

    await lab.succeed_all(FLAVOURS)

    for mpi in FLAVOURS:
        assert await lab.ranks(mpi) == one_rank_each(mpi)
        assert await lab.restarts(mpi) == 0


async def test_ranks_run_on_the_network_of_one_node(lab: Lab) -> None:
    for mpi, flavour in FLAVOURS.items():
        overrides = replace(saying_where(jobs.pi, flavour), pod=CROWDED)
        await lab.submit(pi(mpi, flavour, overrides))

    await lab.succeed_all(FLAVOURS)

    for mpi in FLAVOURS:
        assert await lab.ranks(mpi) == one_rank_each(mpi)
        assert await lab.restarts(mpi) == 0


async def test_a_worker_that_is_deleted_is_replaced_and_the_launcher_tries_again(lab: Lab) -> None:
    # Open MPI 5.0 mostly ends with 0 when it has lost a worker. So one job has no tries left.
    strict = running("strict", ENDLESS)
    strict["metadata"]["annotations"][LOST_WORKERS] = "fail"
    strict["spec"]["runPolicy"] = {"backoffLimit": 0}

    async def lose_worker(made: Manifest) -> None:
        await started(lab, made)
        await lab.kill(f"{made['metadata']['name']}-worker-1")

    slow = (running(mpi, SLOW, flavour) for mpi, flavour in FLAVOURS.items())
    await asyncio.gather(*map(lose_worker, (strict, *slow)))

    await lab.succeed_all(FLAVOURS)
    for mpi in FLAVOURS:
        assert await lab.ranks(mpi) == one_rank_each(mpi)
        assert await lab.restarts(mpi) > 0
        assert await lab.event_messages(mpi, "LauncherRestarted")
    failed = await lab.fails("strict")
    assert "strict-worker-1" in failed["message"]


async def test_a_node_that_is_cut_off_is_noticed_and_its_worker_replaced_where_asked(
    lab: Lab, cluster: Cluster
) -> None:
    for mpi, flavour in FLAVOURS.items():
        await lab.submit(_survives_a_cut(mpi, flavour))
    await asyncio.gather(*(lab.prints(mpi, "rank 1 of 2") for mpi in FLAVOURS))

    await asyncio.to_thread(cluster.cut_node, LOST)

    # A cut link reports nothing: the client has to notice it by itself.
    await lab.succeed_all(FLAVOURS)
    for mpi in FLAVOURS:
        assert await lab.ranks(mpi) == one_rank_each(mpi)
        [message] = await lab.event_messages(mpi, "LauncherRestarted")
        assert "-worker-" in message


def _survives_a_cut(name: str, flavour: Flavour) -> Manifest:
    made = asks_for_replacement(name, flavour)
    made["metadata"]["annotations"][TRANSPORT] = EXEC
    bind(made, launcher=SAFE)
    return made


async def test_the_permission_follows_the_workers_and_the_launcher_waits_for_a_new_one(
    lab: Lab, cluster: Cluster
) -> None:
    until_told = "until test -e /tmp/go; do sleep 0.2; done"
    job = launching("pi", f"{exec_shell.SCRIPT_PATH} pi-worker-1 hostname; {until_told}")
    job["metadata"]["annotations"][SCALE_DOWN_DELAY] = "0s"
    await lab.submit(job)
    await lab.prints("pi", f"{scripts.EVENT}{scripts.Event.WAITING} worker=pi-worker-1")
    assert await _permitted(lab) == ["pi-worker-0"]
    # What somebody else took away comes back with it.
    await lab.client.patch(ROLE_BINDINGS, "pi-launcher", {"subjects": None}, lab.namespace)

    await lab.scale("pi", 2)
    await lab.prints("pi", "\npi-worker-1")
    assert await _permitted(lab) == ["pi-worker-0", "pi-worker-1"]

    await lab.scale("pi", 1)
    await lab.gone(PODS, "pi-worker-1")
    assert await _permitted(lab) == ["pi-worker-0"]
    [launcher] = await lab.pod_names("pi", "launcher")
    cluster.kubectl("exec", "-n", lab.namespace, launcher, "--", "touch", "/tmp/go")
    await lab.succeeds("pi")
    assert (await lab.log("pi")).splitlines()[-1] == "pi-worker-1"


async def _permitted(lab: Lab) -> list[str]:
    """Into which pods the launcher of the job `pi` may exec."""
    [rule] = (await lab.client.get(ROLES, "pi-launcher", lab.namespace))["rules"]
    names: list[str] = rule["resourceNames"]
    return names


async def test_a_launcher_may_exec_into_its_own_workers_and_do_nothing_else(
    lab: Lab, cluster: Cluster
) -> None:
    await lab.submit(running("other", ENDLESS))
    await lab.prints("other", "rank 1 of 2")
    own, foreign = f"{CLIENT} exec pi-worker-0", f"{CLIENT} exec other-worker-0"
    await lab.submit(
        launching("pi", f"{exec_shell.SCRIPT_PATH} pi-worker-0 true; {foreign} -- id; {own} -- id")
    )

    await lab.succeeds("pi")

    log = await lab.log("pi")
    assert 'cannot get resource "pods/exec"' in log
    assert log.count("uid=0") == 1, log
    account = f"system:serviceaccount:{lab.namespace}:pi-launcher"
    allowed = cluster.kubectl("auth", "can-i", "--list", "-n", lab.namespace, "--as", account)
    granted = [line.split() for line in allowed.splitlines() if "pods" in line]
    assert granted == [["pods/exec", "[]", "[pi-worker-0]", "[get", "create]"]]


async def test_an_account_of_the_template_is_used_and_permitted(lab: Lab) -> None:
    account = {"metadata": {"name": "mine", "namespace": lab.namespace}}
    await lab.client.create(SERVICE_ACCOUNTS, account)
    job = pi("pi")
    pod = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
    pod["serviceAccountName"] = "mine"

    await lab.submit(job)

    await lab.succeeds("pi")
    assert await lab.ranks("pi") == one_rank_each("pi")
    assert await lab.find(SERVICE_ACCOUNTS, "pi-launcher") is None


async def test_a_job_that_got_kubectl_instead_of_our_client_says_what_to_change(lab: Lab) -> None:
    job = pi("pi")
    job["spec"]["runPolicy"] = {"backoffLimit": 0}
    pod = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
    mounts = {"volumeMounts": [{"name": "kube", "mountPath": str(PurePath(CLIENT).parent)}]}
    delivery = {"name": "kubectl-delivery", "command": ["cp", "/bin/true", CLIENT]}
    pod["volumes"] = [{"name": "kube", "emptyDir": {}}]
    pod["containers"][0] |= mounts
    pod["initContainers"] = [{**delivery, "image": OPEN_MPI.image, **mounts}]

    await lab.submit(job)

    failed = await lab.fails("pi")
    assert "--kubectl-delivery-image" in failed["message"]


async def test_without_the_permission_the_job_says_what_to_apply_and_others_run(
    lab: Lab, cluster: Cluster, installation: Installation
) -> None:
    cluster.kubectl("delete", BINDING)
    try:
        await lab.submit(pi("pi"))
        await lab.submit(jobs.pi("usual"))
        await lab.becomes("pi", "Running", "False", "Forbidden")
        condition = await lab.condition("pi", "Running")
        await lab.succeeds("usual")
    finally:
        cluster.kubectl("apply", "-f", str(DEPLOY.parent / RBAC_FILE))
    assert condition is not None
    assert f"apply {RBAC_FILE}" in condition["message"]
    await lab.succeeds("pi")
