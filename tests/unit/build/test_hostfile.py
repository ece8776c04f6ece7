"""The hostfile and the discovery script."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_operator.api import decode_job
from mpi_operator.build.hostfile import discover_script, discovered, hostfile
from tests.support.mpijobs import mpijob
from tests.unit.build.jobs import DOMAIN, NONE, make_job, pods, without_workers

BOTH: dict[str, Any] = {"runLauncherAsWorker": True}
ONE: dict[str, Any] = {"worker": {"replicas": 1}}
ON_NODE = pods({"hostNetwork": True})


@pytest.mark.parametrize(
    ("job", "settings", "text"),
    [
        pytest.param(
            make_job(**BOTH),
            NONE,
            "pi-launcher.pi.lab.svc slots=1\n"
            "pi-worker-0.pi.lab.svc slots=1\n"
            "pi-worker-1.pi.lab.svc slots=1\n",
            id="Open MPI, a launcher that runs ranks comes first",
        ),
        pytest.param(
            make_job(**BOTH, **ONE),
            DOMAIN,
            "pi-launcher.pi.lab.svc.example.org slots=1\n"
            "pi-worker-0.pi.lab.svc.example.org slots=1\n",
            id="Open MPI, a launcher that runs ranks, in a cluster with a domain",
        ),
        pytest.param(
            make_job(**BOTH, worker={"replicas": 0}),
            NONE,
            "pi-launcher.pi.lab.svc slots=1\n",
            id="Open MPI, zero workers leave the launcher",
        ),
        pytest.param(
            without_workers(),
            NONE,
            "pi-launcher slots=1\n",
            id="Open MPI, no workers leave the launcher",
        ),
        pytest.param(
            make_job(**BOTH, worker={"replicas": 0}, launcher=ON_NODE),
            NONE,
            "pi-launcher.pi.lab.svc slots=1\n",
            id="Open MPI, a lone launcher has no name of its own on the network of its node",
        ),
        pytest.param(
            make_job(),
            NONE,
            "pi-worker-0.pi.lab.svc slots=1\npi-worker-1.pi.lab.svc slots=1\n",
            id="Open MPI, workers have one slot by default",
        ),
        pytest.param(
            make_job(slotsPerWorker=10, **ONE),
            NONE,
            "pi-worker-0.pi.lab.svc slots=10\n",
            id="Open MPI with slots",
        ),
        pytest.param(
            make_job(**ONE),
            DOMAIN,
            "pi-worker-0.pi.lab.svc.example.org slots=1\n",
            id="Open MPI in a cluster with a domain",
        ),
        pytest.param(
            make_job(mpiImplementation="Intel", slotsPerWorker=10, **ONE),
            NONE,
            "pi-worker-0.pi.lab.svc:10\n",
            id="Intel with slots",
        ),
        pytest.param(
            make_job(mpiImplementation="Intel", **ONE),
            DOMAIN,
            "pi-worker-0.pi.lab.svc.example.org:1\n",
            id="Intel in a cluster with a domain",
        ),
        pytest.param(
            make_job(mpiImplementation="MPICH", slotsPerWorker=10, **ONE),
            NONE,
            "pi-worker-0.pi.lab.svc:10\n",
            id="MPICH with slots",
        ),
        pytest.param(
            make_job(mpiImplementation="MPICH", **ONE),
            DOMAIN,
            "pi-worker-0.pi.lab.svc.example.org:1\n",
            id="MPICH in a cluster with a domain",
        ),
    ],
)
def test_the_hostfile_lists_every_host_of_the_spec(job, settings, text):
    assert hostfile(job, settings) == text


@pytest.mark.parametrize(
    ("job", "running", "settings", "hosts"),
    [
        pytest.param(make_job(), [], NONE, [], id="no worker runs"),
        pytest.param(
            make_job(slotsPerWorker=4),
            [0, 1],
            NONE,
            ["pi-worker-0.pi.lab.svc:4", "pi-worker-1.pi.lab.svc:4"],
            id="two workers run",
        ),
        pytest.param(
            make_job(**BOTH),
            [],
            NONE,
            ["pi-launcher.pi.lab.svc:1"],
            id="a launcher that runs ranks is always there",
        ),
        pytest.param(
            make_job(**BOTH),
            [1],
            NONE,
            ["pi-launcher.pi.lab.svc:1", "pi-worker-1.pi.lab.svc:1"],
            id="a launcher that runs ranks comes first",
        ),
        pytest.param(
            make_job(),
            [0],
            DOMAIN,
            ["pi-worker-0.pi.lab.svc.example.org:1"],
            id="with a cluster domain",
        ),
        pytest.param(
            make_job(**BOTH),
            [0],
            DOMAIN,
            ["pi-launcher.pi.lab.svc.example.org:1", "pi-worker-0.pi.lab.svc.example.org:1"],
            id="with a cluster domain and a launcher that runs ranks",
        ),
        pytest.param(
            make_job(worker={"replicas": 12}),
            [10, 2, 2, 0],
            NONE,
            [f"pi-worker-{ordinal}.pi.lab.svc:1" for ordinal in (0, 2, 10)],
            id="workers are in the order of their indexes, each once",
        ),
        pytest.param(
            make_job(mpiImplementation="Intel"),
            [0],
            NONE,
            ["pi-worker-0.pi.lab.svc:1"],
            id="the script is the same for every MPI",
        ),
    ],
)
def test_the_script_prints_the_running_hosts(job, running, settings, hosts):
    script = discover_script(job, running, settings)
    assert script == "".join(f"{line}\n" for line in ["#!/bin/sh", *(f"echo {h}" for h in hosts)])


@given(st.frozensets(st.integers(0, 10**6)), st.booleans(), st.sampled_from([NONE, DOMAIN]))
def test_what_a_script_lists_can_be_read_back(running, launcher_works, settings):
    job = make_job(runLauncherAsWorker=launcher_works)
    assert discovered(job, discover_script(job, running, settings)) == running


@pytest.mark.parametrize(
    ("script", "found"),
    [
        pytest.param("", set(), id="an empty script"),
        pytest.param("#!/bin/sh\n", set(), id="a script without hosts"),
        pytest.param("echo pi-worker-3.pi.lab.svc\n", {3}, id="upstream's lines have no slots"),
        pytest.param("echo pi-worker-3.pi.lab.svc.example.org:8", {3}, id="another domain"),
        pytest.param("echo pi-worker-3:8\n", {3}, id="the first version's lines have no domain"),
        pytest.param("echo pi-launcher.pi.lab.svc:1\n", set(), id="the launcher is no worker"),
        pytest.param("echo pie-worker-1.pie.lab.svc\n", set(), id="a worker of another job"),
        pytest.param("# echo pi-worker-1.pi.lab.svc\n", set(), id="a comment"),
        pytest.param("echo pi-worker-1; reboot\n", set(), id="a line that does more"),
        pytest.param("echo pi-worker-01.pi.lab.svc\n", set(), id="an index with a leading zero"),
        pytest.param("echo pi-worker-" + "9" * 5000, set(), id="a huge index"),
        pytest.param("echo pi-worker-\u0661.pi.lab.svc", set(), id="digits of another script"),
        pytest.param("\x00\udc80 nonsense", set(), id="no script at all"),
    ],
)
def test_only_workers_of_the_job_are_read_from_a_script(script, found):
    assert discovered(make_job(), script) == found


@given(st.text())
def test_reading_a_script_never_fails(text):
    assert discovered(make_job(), text) >= frozenset()


@pytest.mark.parametrize("implementation", ["OpenMPI", "Intel", "MPICH"])
def test_the_limit_of_workers_excludes_no_job_that_could_work(implementation):
    job = decode_job(
        mpijob("a", "b", mpiImplementation=implementation, worker={"replicas": 20_000})
    )
    texts = hostfile(job, NONE), discover_script(job, range(20_000), NONE)
    assert sum(map(len, texts)) > 2**20  # the limit of a ConfigMap
