"""What goes wrong while a job runs: it ends as it should, and says what happened."""

import asyncio

from devcluster.cluster import Cluster
from mpi_operator.api.annotations import FORCE_DELETE_LOST_WORKERS, LOST_WORKERS
from mpi_operator.kube.resources import Manifest
from tests.cluster.operator.installation import NAMESPACE, Installation
from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import FLAVOURS, OPEN_MPI, Flavour, Wishes, one_rank_each, pi, spread

# Says where it is, and then takes its time: a fault of the test comes in between.
SLOW = ["sh", "-c", "/home/mpiuser/pi 100000; sleep 10"]
BRISK = ["sh", "-c", "/home/mpiuser/pi 100000; sleep 5"]
ENDLESS = ["sh", "-c", "/home/mpiuser/pi 100000; sleep 600"]


def job(
    program: list[str],
    name: str = "pi",
    *,
    pod: Manifest | None = None,
    flavour: Flavour = OPEN_MPI,
) -> Manifest:
    launcher = {"command": [*flavour.command()[:-1], *program]}
    return pi(name, flavour, Wishes(launcher=launcher, pod=pod or {}))


async def started(lab: Lab, manifest: Manifest) -> None:
    """The job is submitted, and its ranks run."""
    name = manifest["metadata"]["name"]
    await lab.submit(manifest)
    await lab.prints(name, "rank 1 of 2")
    await lab.runs(name)


async def test_a_worker_that_is_deleted_is_replaced_and_the_launcher_tries_again(lab: Lab) -> None:
    # Not Open MPI 5.0: see below.
    flavours = {mpi: flavour for mpi, flavour in FLAVOURS.items() if mpi != "openmpi"}
    await asyncio.gather(*(started(lab, job(BRISK, m, flavour=f)) for m, f in flavours.items()))

    for mpi in flavours:
        await lab.kill(f"{mpi}-worker-1")

    await lab.succeed_all(flavours)
    for mpi in flavours:
        assert await lab.ranks(mpi) == one_rank_each(mpi)
        assert await lab.restarts(mpi) > 0
        assert any(f"{mpi}-worker-1" in text for text in await lab.told(mpi, "WorkerReplaced"))
        assert await lab.told(mpi, "LauncherRestarted")


# The mpirun of Open MPI 5.0 says that it lost a daemon and gives up, and mostly ends with 0.
async def test_a_launcher_that_ends_well_though_it_lost_a_worker_has_failed(lab: Lab) -> None:
    strict, usual, script = map(_tried_once, ("strict", "usual", "script"))
    strict["metadata"]["annotations"] = {LOST_WORKERS: "fail"}
    _outlive_mpirun(script, seconds=1)
    await asyncio.gather(*(started(lab, each) for each in (strict, usual, script)))

    for name in ("strict", "usual", "script"):
        await lab.kill(f"{name}-worker-1")

    for name in ("strict", "usual"):
        failed = await lab.fails(name)
        assert failed["reason"] in ("WorkerLost", "BackoffLimitExceeded")
        assert f"{name}-worker-1" in failed["message"]
    # Whether this one fails depends on whether the remote shell was in time to tell of it.
    await lab.ends("script")
    assert "script-worker-1" in (await lab.status("script"))["conditions"][-1]["message"]
    assert any("script-worker-1" in text for text in await lab.told("script", "WorkerLost"))


def _tried_once(name: str) -> Manifest:
    """A job without an end whose launcher is not started again, should it end with an error."""
    made = job(ENDLESS, name)
    made["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = "Never"
    made["spec"]["runPolicy"] = {**made["spec"].get("runPolicy", {}), "backoffLimit": 0}
    return made


async def test_a_launcher_that_is_killed_is_started_again(lab: Lab) -> None:
    await started(lab, job(BRISK))
    [launcher] = await lab.launchers("pi")

    await lab.kill(launcher["metadata"]["name"])

    await lab.succeeds("pi", 120)
    assert await lab.ranks("pi") == one_rank_each("pi")
    [told] = await lab.told("pi", "LauncherRestarted")
    assert "started again (1 of 6 times)" in told
    assert (await lab.status("pi"))["replicaStatuses"]["Launcher"]["failed"] == 1


async def test_the_api_server_restarts_while_a_job_runs(lab: Lab, cluster: Cluster) -> None:
    await started(lab, job(SLOW))

    await asyncio.to_thread(cluster.kill_apiserver)
    await asyncio.to_thread(cluster.start_apiserver)

    await lab.succeeds("pi", 120)
    assert await lab.ranks("pi") == one_rank_each("pi")
    assert await lab.restarts("pi") == 0
    await lab.tells_its_life("pi")


async def test_the_operator_is_killed_and_its_standby_takes_over(
    lab: Lab, installation: Installation, cluster: Cluster
) -> None:
    await started(lab, job(SLOW))
    first = installation.leader()

    cluster.kubectl("delete", "pod", first, "-n", NAMESPACE, "--grace-period=0", "--force")

    await lab.succeeds("pi", 120)
    assert await lab.ranks("pi") == one_rank_each("pi")
    assert await lab.restarts("pi") == 0
    await lab.tells_its_life("pi")
    assert installation.leader() != first
    installation.wait()


async def test_a_node_that_is_cut_off_is_told_and_its_worker_is_not_replaced(
    lab: Lab, cluster: Cluster
) -> None:
    await started(lab, job(ENDLESS))
    node, before = await _node_without_launcher(lab), await _workers(lab)

    await asyncio.to_thread(cluster.cut_node, node)

    await _tells_of(lab, f"node-{node}")
    assert await _workers(lab) == before


async def test_a_node_that_loses_its_power_is_told_and_its_worker_replaced_where_asked(
    lab: Lab, cluster: Cluster
) -> None:
    # The job's own patience with nodes, in place of the cluster's five minutes.
    patience = [
        {
            "key": f"node.kubernetes.io/{state}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 1,
        }
        for state in ("unreachable", "not-ready")
    ]
    # When one node is gone, both may be on the other.
    pod = {"tolerations": patience, **spread("pi", otherwise="ScheduleAnyway")}
    # A node that has no power gives no grace either, and the cluster would wait for it.
    lost = job(ENDLESS, pod=pod | {"terminationGracePeriodSeconds": 1})
    lost["metadata"]["annotations"] = {FORCE_DELETE_LOST_WORKERS: "true"}
    _outlive_mpirun(lost)
    await started(lab, lost)
    node = await _node_without_launcher(lab)
    before = await _workers(lab, f"node-{node}")

    await asyncio.to_thread(cluster.kill_node, node)

    await _tells_of(lab, f"node-{node}")
    await lab.eventually("pi", lambda: _are_replaced(lab, before), 120)
    assert await lab.told("pi", "WorkerReplaced")


def _outlive_mpirun(manifest: Manifest, seconds: int = 600) -> None:
    """Let a launcher go on when mpirun has noticed that a worker is lost, as elastic ones do."""
    launcher = manifest["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    launcher["command"] = ["sh", "-c", f'"$@"; sleep {seconds}', "sh", *launcher["command"]]


async def _node_without_launcher(lab: Lab) -> int:
    [launcher] = await lab.launchers("pi")
    [other] = await lab.nodes("pi") - {launcher["spec"]["nodeName"]}
    return int(other.removeprefix("node-"))


async def _workers(lab: Lab, node: str = "") -> dict[str, str]:
    """The uids of workers by their names, of one node or of all."""
    return {
        pod["metadata"]["name"]: pod["metadata"]["uid"]
        for pod in await lab.pods("pi", "worker")
        if node in ("", pod["spec"].get("nodeName"))
    }


async def _are_replaced(lab: Lab, before: dict[str, str]) -> bool:
    """Whether others have the names of these workers, and all run."""
    pods = await lab.pods("pi", "worker")
    running = [pod for pod in pods if pod["status"].get("phase") == "Running"]
    return len(running) == 2 and not before.items() & (await _workers(lab)).items()


async def _tells_of(lab: Lab, words: str) -> None:
    """The job says something, in its status and by an event, within a minute."""

    async def is_told() -> bool:
        conditions = (await lab.status("pi"))["conditions"]
        events = [message for _, message in await lab.events("pi")]
        said = [each["message"] for each in conditions]
        return any(words in each for each in said) and any(words in each for each in events)

    await lab.eventually("pi", is_told)
