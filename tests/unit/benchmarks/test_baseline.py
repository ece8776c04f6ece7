"""The objects of jobs without an operator."""

from benchmarks.operators.baseline import stages
from benchmarks.operators.jobs import job
from mpi_operator.api import decode_job


def test_everything_that_pods_need_comes_before_them():
    made = stages(decode_job(job("pi", "lab", 2)))
    kinds = [sorted(manifest["kind"] for _, manifest in stage) for stage in made]
    assert kinds == [["ConfigMap", "Secret", "Service"], ["Pod", "Pod"], ["Job"]]


def test_the_launcher_starts():
    [[(_, launcher)]] = stages(decode_job(job("pi", "lab", 2)))[2:]
    assert "suspend" not in launcher["spec"]
