"""Faults while a job runs: it ends as it should and reports what happened."""

import asyncio
import shlex
from functools import partial

from devcluster.cluster import Cluster
from mpi_operator.api.annotations import (
    FORCE_DELETE_LOST_WORKERS,
    LOST_WORKERS,
    MAX_WORKER_REPLACEMENTS,
)
from mpi_operator.kube.resources import PODS, Manifest
from tests.cluster.operator.installation import Installation
from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import (
    FLAVOURS,
    OPEN_MPI,
    Flavour,
    Overrides,
    one_rank_each,
    pi,
    spread,
)

# Print the ranks, then sleep: the fault comes in between.
SLOW = ["sh", "-c", "/home/mpiuser/pi 100000; sleep 10"]
BRISK = ["sh", "-c", "/home/mpiuser/pi 100000; sleep 5"]
ENDLESS = ["sh", "-c", "/home/mpiuser/pi 100000; sleep 600"]
# Endless the first time in a worker, and brief the second time. A rank prints only after
# all ranks have started, so its output shows that every worker has its mark.
_FIRST_TIME = "mkdir /tmp/again 2>/dev/null; first=$?; /home/mpiuser/pi 100000; [ $first != 0 ]"
ONCE_ENDLESS = ["sh", "-c", f"{_FIRST_TIME} || sleep 600"]
# Runs the rest of the command when the test has created the file.
_AFTER_GO = ["sh", "-c", 'until test -e /tmp/go; do sleep 0.2; done; exec "$@"', "sh"]
# The node that fails. Pods that have to survive are on the other one.
LOST, SAFE = 1, 0
# Endless in a worker on the node that fails.
ENDLESS_THERE = ["sh", "-c", f'/home/mpiuser/pi 100000; [ "$NODE" = node-{SAFE} ] || sleep 600']
NODE = {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}


def job(
    program: list[str],
    name: str = "pi",
    *,
    pod: Manifest | None = None,
    worker: Manifest | None = None,
    flavour: Flavour = OPEN_MPI,
) -> Manifest:
    launcher = {"command": [*flavour.command()[:-1], *program]}
    return pi(name, flavour, Overrides(launcher=launcher, worker=worker or {}, pod=pod or {}))


async def started(lab: Lab, manifest: Manifest) -> None:
    """The job is submitted, and its ranks run."""
    name = manifest["metadata"]["name"]
    await lab.submit(manifest)
    await lab.prints(name, "rank 1 of 2")
    await lab.runs(name)


async def test_a_worker_that_is_deleted_is_replaced_and_the_launcher_tries_again(lab: Lab) -> None:
    async def lose_worker(mpi: str, flavour: Flavour) -> str:
        """As soon as its ranks run: those of the slowest job may start when others have ended."""
        await started(lab, job(SLOW, mpi, flavour=flavour))
        [launcher] = await lab.pod_names(mpi, "launcher")
        await lab.kill(f"{mpi}-worker-1")
        return launcher

    launchers = await asyncio.gather(*(lose_worker(*each) for each in FLAVOURS.items()))
    first = dict(zip(FLAVOURS, launchers, strict=True))

    await lab.succeed_all(FLAVOURS)
    for mpi in FLAVOURS:
        assert await lab.ranks(mpi) == one_rank_each(mpi)
        assert await lab.restarts(mpi) > 0
        assert any(
            f"{mpi}-worker-1" in text for text in await lab.event_messages(mpi, "WorkerReplaced")
        )
        assert await lab.event_messages(mpi, "LauncherRestarted")
        # With Open MPI 5.0 it is the pod of another Job, and its log is still there.
        assert "rank 1 of 2" in await lab.pod_log(first[mpi]), await lab.account(mpi)


async def test_a_drained_node_costs_a_job_a_try_and_no_more(lab: Lab, cluster: Cluster) -> None:
    for mpi, flavour in FLAVOURS.items():
        pod = spread(mpi, otherwise="ScheduleAnyway")
        made = job(ENDLESS_THERE, mpi, pod=pod, worker={"env": [NODE]}, flavour=flavour)
        bind(made, launcher=SAFE)
        await lab.submit(made)
    for mpi in FLAVOURS:
        await lab.prints(mpi, "rank 1 of 2")
    mine = f"training.kubeflow.org/job-name in ({','.join(FLAVOURS)})"
    flags = ("--pod-selector", mine, "--delete-emptydir-data", "--timeout=60s")

    await asyncio.to_thread(cluster.kubectl, "drain", f"node-{LOST}", *flags)
    try:
        await lab.succeed_all(FLAVOURS)
    finally:
        cluster.kubectl("uncordon", f"node-{LOST}")

    for mpi in FLAVOURS:
        assert await lab.ranks(mpi) == one_rank_each(mpi), await lab.account(mpi)
        assert len(await lab.event_messages(mpi, "WorkerReplaced")) == 1, await lab.account(mpi)
        assert await lab.event_messages(mpi, "LauncherRestarted"), await lab.account(mpi)


# The mpirun of Open MPI 5.0 says that it lost a daemon and gives up, and mostly ends with 0.
async def test_a_launcher_that_ends_well_though_it_lost_a_worker_fails_without_tries_left(
    lab: Lab,
) -> None:
    strict, usual, script, twice = map(_tried_once, ("strict", "usual", "script", "twice"))
    strict["metadata"]["annotations"] = {LOST_WORKERS: "fail"}
    _go_on_with(script, "sleep", "1")
    twice["spec"]["runPolicy"]["backoffLimit"] = 1
    await asyncio.gather(*(started(lab, each) for each in (strict, usual, script, twice)))

    for name in ("strict", "usual", "script", "twice"):
        await lab.kill(f"{name}-worker-1")
    await lab.eventually("twice", partial(_runs_in_try, lab, "twice", 2), 90)
    await lab.kill("twice-worker-1")

    for name in ("strict", "usual", "twice"):
        failed = await lab.fails(name)
        assert failed["reason"] in ("WorkerLost", "BackoffLimitExceeded")
        assert f"{name}-worker-1" in failed["message"]
    assert await _tries(lab, "twice") == 2
    assert len(await lab.event_messages("twice", "LauncherRestarted")) == 1
    # Whether this one fails depends on whether the remote shell reported the loss in time.
    await lab.ends("script")
    assert "script-worker-1" in (await lab.status("script"))["conditions"][-1]["message"]
    assert any(
        "script-worker-1" in text for text in await lab.event_messages("script", "WorkerLost")
    )


async def test_a_worker_that_finishes_while_it_is_deleted_is_not_lost(lab: Lab) -> None:
    # A shell that is the first process of a container does not care for signals.
    unhurried = {"command": ["sh", "-c", "/usr/sbin/sshd -De; true"]}
    await started(lab, job(BRISK, worker=unhurried))

    await lab.client.delete(PODS, "pi-worker-1", lab.namespace)

    await lab.succeeds("pi")
    assert await lab.ranks("pi") == one_rank_each("pi")
    assert not await lab.has_event("pi", "WorkerLost"), await lab.account("pi")


async def _runs_in_try(lab: Lab, name: str, number: int) -> bool:
    """Whether the ranks of a job run, and the launcher has been started so many times."""
    running = [pod for pod in await lab.launchers(name) if pod["status"]["phase"] == "Running"]
    if not running or await _tries(lab, name) != number:
        return False
    return "rank 1 of 2" in await lab.pod_log(running[0]["metadata"]["name"])


async def _tries(lab: Lab, name: str) -> int:
    """How many launchers there have been; for a job whose containers are not restarted."""
    return len(await lab.launchers(name))


def _tried_once(name: str, pod: Manifest | None = None) -> Manifest:
    """A job without an end whose launcher is not started again, should it end with an error."""
    made = job(ENDLESS, name, pod=pod)
    made["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = "Never"
    made["spec"]["runPolicy"] = {**made["spec"].get("runPolicy", {}), "backoffLimit": 0}
    return made


async def test_a_launcher_that_is_killed_is_started_again(lab: Lab) -> None:
    await started(lab, job(BRISK))
    [launcher] = await lab.launchers("pi")

    await lab.kill(launcher["metadata"]["name"])

    await lab.succeeds("pi", 120)
    assert await lab.ranks("pi") == one_rank_each("pi")
    assert len(await lab.event_messages("pi", "LauncherRestarted")) == 1
    assert (await lab.status("pi"))["replicaStatuses"]["Launcher"]["failed"] == 1


async def test_the_api_server_restarts_while_a_job_runs(lab: Lab, cluster: Cluster) -> None:
    await started(lab, job(SLOW))

    await asyncio.to_thread(cluster.kill_apiserver)
    await asyncio.to_thread(cluster.start_apiserver)

    await lab.succeeds("pi", 120)
    assert await lab.ranks("pi") == one_rank_each("pi")
    assert await lab.restarts("pi") == 0
    await lab.has_usual_history("pi")


async def test_the_operator_is_killed_and_its_standby_takes_over(
    lab: Lab, installation: Installation
) -> None:
    await started(lab, job(SLOW))
    leader, standby = installation.leader(), installation.standby()

    installation.kill(leader)

    await lab.succeeds("pi", 120)
    assert installation.leader() == standby
    assert await lab.ranks("pi") == one_rank_each("pi")
    assert await lab.restarts("pi") == 0
    await lab.has_usual_history("pi")
    installation.wait()


async def test_a_node_that_is_cut_off_is_reported_and_its_worker_replaced_only_where_asked(
    lab: Lab, cluster: Cluster
) -> None:
    plain, script = _tried_once("plain", IMPATIENT), job(ENDLESS, "script", pod=IMPATIENT)
    plain["metadata"]["annotations"] = {MAX_WORKER_REPLACEMENTS: "6"}
    _go_on_with(script, *_AFTER_GO, *OPEN_MPI.command())
    asked = [asks_for_replacement(mpi, flavour) for mpi, flavour in FLAVOURS.items()]
    await asyncio.gather(*(_started_across(lab, each) for each in (plain, script, *asked)))
    lost = {name: await _worker_on(lab, name, LOST) for name in ("plain", "script", *FLAVOURS)}

    await asyncio.to_thread(cluster.cut_node, LOST)

    await asyncio.gather(*(_reports(lab, name, f"node-{LOST}") for name in lost))
    # Kubernetes has evicted them, and this is when they are replaced where asked.
    for name, worker in lost.items():
        await lab.eventually(name, partial(lab.has_event, name, "WorkerLost"), 90)
        assert worker["metadata"]["name"] in (await lab.event_messages(name, "WorkerLost"))[0]
    for name in ("plain", "script"):
        assert await _is_there(lab, lost[name]), await lab.account(name)
    # A cut link reports nothing: the remote shell has to notice it by itself.
    failed = await lab.fails("plain")
    assert failed["reason"] in ("WorkerLost", "BackoffLimitExceeded")
    assert lost["plain"]["metadata"]["name"] in failed["message"]
    await lab.succeed_all(FLAVOURS)
    for mpi in FLAVOURS:
        assert await lab.ranks(mpi) == one_rank_each(mpi)
        [message] = await lab.event_messages(mpi, "LauncherRestarted")
        assert lost[mpi]["metadata"]["name"] in message

    await asyncio.to_thread(cluster.join_node, LOST)

    # The old worker is back with its node, and could do the work until the kubelet ends it.
    await lab.eventually("script", partial(_is_replaced, lab, lost["script"]), 90)
    [launcher] = await lab.pod_names("script", "launcher")
    cluster.kubectl("exec", "-n", lab.namespace, launcher, "--", "touch", "/tmp/go")
    await _succeeds_after_a_loss(lab, "script", lost["script"])


def asks_for_replacement(name: str, flavour: Flavour) -> Manifest:
    """A job without an end while a worker is on the node that fails."""
    # When one node is gone, both may be on the other.
    pod = IMPATIENT | spread(name, otherwise="ScheduleAnyway")
    made = job(ENDLESS_THERE, name, pod=pod, worker={"env": [NODE]}, flavour=flavour)
    made["metadata"]["annotations"] = {FORCE_DELETE_LOST_WORKERS: "true"}
    return made


async def test_a_node_that_loses_its_power_is_reported_and_its_worker_replaced_where_asked(
    lab: Lab, cluster: Cluster
) -> None:
    # When one node is gone, both may be on the other.
    asked = job(ENDLESS, "asked", pod=IMPATIENT | spread("asked", otherwise="ScheduleAnyway"))
    asked["metadata"]["annotations"] = {FORCE_DELETE_LOST_WORKERS: "true"}
    _go_on_with(asked, *OPEN_MPI.command())
    headless = job(ONCE_ENDLESS, "headless", pod=IMPATIENT)
    bind(headless, launcher=LOST, worker=SAFE)
    await asyncio.gather(_started_across(lab, asked), started(lab, headless))
    worker = await _worker_on(lab, "asked", LOST)
    [launcher] = await lab.launchers("headless")

    await asyncio.to_thread(cluster.kill_node, LOST)

    await asyncio.gather(*(_reports(lab, name, f"node-{LOST}") for name in ("asked", "headless")))
    await _succeeds_after_a_loss(lab, "asked", worker)
    # The first one may still run, and two would do the work twice.
    assert await _is_the_only_launcher(lab, "headless", launcher), await lab.account("headless")

    await asyncio.to_thread(cluster.start_node, LOST)

    await lab.succeeds("headless")
    assert await lab.ranks("headless") == one_rank_each("headless")
    assert len(await lab.event_messages("headless", "LauncherRestarted")) == 1
    assert (await lab.status("headless"))["replicaStatuses"]["Launcher"]["failed"] == 1


# Tolerate a lost node for 1s instead of the cluster's five minutes. And no grace period: Kubernetes
# would wait for it.
IMPATIENT: Manifest = {
    "tolerations": [
        {
            "key": f"node.kubernetes.io/{state}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 1,
        }
        for state in ("unreachable", "not-ready")
    ],
    "terminationGracePeriodSeconds": 1,
}


def _go_on_with(manifest: Manifest, *command: str) -> None:
    """Let the launcher run a command when mpirun has lost a worker, as elastic ones do."""
    container = _pod(manifest, "Launcher")["containers"][0]
    container["command"] = ["sh", "-c", f'"$@"; {shlex.join(command)}', "sh", *container["command"]]


def bind(manifest: Manifest, **nodes: int) -> None:
    """Say where the pods of a role are."""
    for role, node in nodes.items():
        _pod(manifest, role.capitalize())["nodeName"] = f"node-{node}"


def _pod(manifest: Manifest, role: str) -> Manifest:
    pod: Manifest = manifest["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]
    return pod


async def _started_across(lab: Lab, manifest: Manifest) -> None:
    """A worker is on the node that fails, and the launcher is not."""
    bind(manifest, launcher=SAFE)
    await started(lab, manifest)


async def _worker_on(lab: Lab, name: str, node: int) -> Manifest:
    workers = await lab.pods(name, "worker")
    [worker] = [each for each in workers if each["spec"]["nodeName"] == f"node-{node}"]
    return worker


async def _is_there(lab: Lab, pod: Manifest) -> bool:
    """Whether this very pod still exists; it may be terminating."""
    found = await lab.find(PODS, pod["metadata"]["name"])
    return found is not None and found["metadata"]["uid"] == pod["metadata"]["uid"]


async def _is_replaced(lab: Lab, pod: Manifest) -> bool:
    """Whether another pod has the name of one."""
    found = await lab.find(PODS, pod["metadata"]["name"])
    return found is not None and found["metadata"]["uid"] != pod["metadata"]["uid"]


async def _is_the_only_launcher(lab: Lab, name: str, launcher: Manifest) -> bool:
    """Whether this is the only pod of a launcher, terminating ones included."""
    launchers = await lab.all_pods(name, "launcher")
    return [each["metadata"]["uid"] for each in launchers] == [launcher["metadata"]["uid"]]


async def _succeeds_after_a_loss(lab: Lab, name: str, worker: Manifest) -> None:
    """The launcher goes on with a replacement of a lost worker, and the job reports it."""
    lost = worker["metadata"]["name"]
    await lab.succeeds(name, 120)
    assert not await _is_there(lab, worker)
    assert (await lab.log(name)).count("rank 1 of 2") == 2
    assert await lab.ranks(name) == one_rank_each(name)
    assert lost in (await lab.status(name))["conditions"][-1]["message"]
    assert any(lost in text for text in await lab.event_messages(name, "WorkerReplaced"))


async def _reports(lab: Lab, name: str, words: str) -> None:
    """Wait until a job has these words in a condition and in an event."""

    async def is_reported() -> bool:
        conditions = (await lab.status(name))["conditions"]
        events = [message for _, message in await lab.events(name)]
        said = [each["message"] for each in conditions]
        return any(words in each for each in said) and any(words in each for each in events)

    await lab.eventually(name, is_reported)
