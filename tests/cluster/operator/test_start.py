"""Starts that take long, and starts that do not succeed: both say what they wait for."""

import asyncio
from datetime import timedelta
from functools import partial

from devcluster.cluster import Cluster
from mpi_operator.api.annotations import INIT_TIMEOUT
from mpi_operator.build import scripts
from mpi_operator.kube.resources import Manifest
from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import FLAVOURS, Overrides, one_rank_each, pi

LATE = ["sh", "-c", "while ! test -e /tmp/go; do sleep 0.2; done; exec /usr/sbin/sshd -De"]
NEVER = ["sh", "-c", "trap exit TERM; sleep 600 & wait"]
# Nobody listens there, in no pod and on no node: the answer comes at once.
NO_NAMES = {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["127.0.0.1"]}}
NO_IMAGE = {"image": "127.0.0.1:9/no-such-image:1", "imagePullPolicy": "IfNotPresent"}
PORT = "2022"  # not the one that our images have for ssh and sshd
SSH_OPTIONS = (
    "PRTE_MCA_plm_ssh_args",
    "OMPI_MCA_plm_rsh_args",
    "HYDRA_LAUNCHER_EXTRA_ARGS",
    "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS",
)


async def test_the_first_mpirun_waits_for_an_sshd_that_is_late(lab: Lab, cluster: Cluster) -> None:
    for mpi, flavour in FLAVOURS.items():
        await lab.submit(pi(mpi, flavour, Overrides(worker={"command": LATE})))
    await lab.submit(pi("noname", overrides=Overrides(pod=NO_NAMES)))
    await asyncio.gather(
        *(_says_for_whom_it_waits(lab, mpi, "Connection refused") for mpi in FLAVOURS)
    )
    await _says_for_whom_it_waits(lab, "noname", "Could not resolve hostname")
    for mpi in FLAVOURS:
        for worker in await lab.pod_names(mpi, "worker"):
            cluster.kubectl("exec", "-n", lab.namespace, worker, "--", "touch", "/tmp/go")

    await lab.succeed_all(FLAVOURS)

    for mpi in FLAVOURS:
        assert await lab.ranks(mpi) == one_rank_each(mpi)
        assert await lab.restarts(mpi) == 0


async def test_sshd_may_listen_on_any_port(lab: Lab) -> None:
    env = [{"name": name, "value": f"-p {PORT}"} for name in SSH_OPTIONS]
    sshd = {"command": ["/usr/sbin/sshd", "-De", "-p", PORT]}
    for mpi, flavour in FLAVOURS.items():
        overrides = Overrides(launcher={"env": env}, worker=sshd)
        await lab.submit(pi(mpi, flavour, overrides, launcherCreationPolicy="WaitForWorkersReady"))

    await lab.succeed_all(FLAVOURS)

    for mpi in FLAVOURS:
        assert await lab.ranks(mpi) == one_rank_each(mpi)
        assert await lab.restarts(mpi) == 0
        assert await lab.is_launched_last(mpi)
        # If our probe looked at another port, it would let them pass after a minute.
        assert await lab.time_to_ready(mpi) < timedelta(seconds=45)
        for pod in await lab.pods(mpi, "worker"):
            assert _is_asked_by_us(pod)


async def test_a_start_that_does_not_come_about_fails_and_names_the_worker(lab: Lab) -> None:
    jobs = {
        "nosshd": (Overrides(worker={"command": NEVER}), "Connection refused"),
        "noname": (Overrides(pod=NO_NAMES), "Could not resolve hostname"),
        "noimage": (Overrides(worker=NO_IMAGE), "no-such-image"),
        "nonode": (
            Overrides(worker={"resources": {"requests": {"cpu": "1000"}}}),
            "Insufficient cpu",
        ),
    }
    for name, (overrides, _) in jobs.items():
        await lab.submit(_impatient(pi(name, overrides=overrides)))

    failures = await asyncio.gather(*(lab.fails(name) for name in jobs))

    for (name, (_, cause)), failed in zip(jobs.items(), failures, strict=True):
        assert f"{name}-worker-" in failed["message"], failed
        assert cause in failed["message"], failed
        await lab.eventually(name, partial(_is_reported, lab, name, cause))


async def _says_for_whom_it_waits(lab: Lab, name: str, cause: str) -> None:
    """In its log, its status and by an event."""
    await lab.prints(name, f"{scripts.EVENT}{scripts.Event.WAITING} worker={name}-worker-")

    def is_reported(job: Manifest) -> bool:
        said = [each["message"] for each in job["status"]["conditions"]]
        return any(f"{name}-worker-" in each and cause in each for each in said)

    await lab.comes_true(name, is_reported, 60)
    [message] = await lab.event_messages(name, "LauncherWaits")
    assert f"{name}-worker-" in message
    assert cause in message


def _is_asked_by_us(pod: Manifest) -> bool:
    [container] = pod["spec"]["containers"]
    return "/etc/mpi/worker_ready.sh" in container["startupProbe"]["exec"]["command"]


async def _is_reported(lab: Lab, name: str, cause: str) -> bool:
    """Whether an event says it: they come after the status."""
    return any(cause in message for _, message in await lab.events(name))


def _impatient(job: Manifest) -> Manifest:
    metadata = {**job["metadata"], "annotations": {INIT_TIMEOUT: "20s"}}
    return {**job, "metadata": metadata}
