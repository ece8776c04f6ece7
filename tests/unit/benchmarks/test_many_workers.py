"""What the log of a launcher with many workers tells about its starts."""

from datetime import UTC, datetime, timedelta

import pytest

from benchmarks import many_workers
from benchmarks.many_workers import Incomplete, Start, samples

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def log(*lines: tuple[float, str]) -> list[many_workers.Line]:
    return [(NOON + timedelta(seconds=seconds), text) for seconds, text in lines]


def test_each_start_counts_from_its_own_beginning():
    lines = log(
        (0, "starting"),
        (1, "mpi-operator: event=waiting worker=many-worker-1"),
        (2, "rank 1 of 2"),
        (3.5, "rank 0 of 2"),
        (10, "starting"),
        (10.5, "rank 0 of 2"),
        (10.75, "rank 1 of 2"),
    )
    assert samples(lines, 2) == [Start(2, 3.5), Start(0.5, 0.75)]


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_start_with_another_number_of_ranks_is_no_sample(ranks):
    with pytest.raises(Incomplete, match=f"{ranks} ranks of 2 printed"):
        samples(log((0, "starting"), *[(1, "rank 0 of 2")] * ranks), 2)


def test_the_launcher_starts_a_rank_in_each_worker_once_all_are_ready():
    spec = many_workers.job("openmpi", 256, 3)["spec"]
    assert spec["launcherCreationPolicy"] == "WaitForWorkersReady"
    assert spec["mpiReplicaSpecs"]["Worker"]["replicas"] == 256
    [container] = spec["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    assert "seq 3" in container["command"][-1]
    assert "-n 256 " in container["command"][-1]
