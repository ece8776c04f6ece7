import pytest

from benchmarks.operators.comparability import Environment
from benchmarks.operators.figures import ALL, creation, jobs, memory, restart
from benchmarks.operators.samples import Sample
from devcluster.audit import Record

ENVIRONMENT = Environment("a", "b", {})


def sample(subject, case, **values):
    named = {name.replace("_", " "): value for name, value in values.items()}
    return Sample(subject, case, 0, named, ENVIRONMENT)


def created(resource, user, *, received, answered):
    return Record(
        user=user,
        verb="create",
        resource=resource,
        subresource="",
        namespace="n",
        name="",
        code=201,
        stage="ResponseComplete",
        user_agent="",
        uri="",
        received=received,
        answered=answered,
    )


def test_the_clock_runs_from_the_submission_to_the_last_pod_or_the_launcher():
    requests = [
        created("mpijobs", "admin", received=1, answered=2),
        created("pods", "us", received=3, answered=4),
        created("jobs", "us", received=5, answered=9),
        created("pods", "us", received=6, answered=7),
        created("pods", "the job controller", received=9, answered=20),
        created("events", "us", received=9, answered=30),
    ]
    assert creation.seconds_to_exist(requests, "us") == 8


def test_creation_compares_rates_at_every_size_and_the_growth():
    sizes = {16: 1.0, 256: 2.0}
    samples = [
        sample(subject, creation.case(size), seconds=1, pods_per_second=rate, ms_per_pod=cost)
        for subject, rate in (("ours", 100.0), ("tuned", 20.0), ("go", 1.0), ("raw", 110.0))
        for size, cost in sizes.items()
    ]
    found = {(each.rival, each.what): each for each in ALL["creation"].comparisons(samples)}
    assert found["go", "creating 256 workers"].is_met
    assert found["tuned", "creating 16 workers"].measured == 5
    assert found["raw", "creating 256 workers"].is_met
    assert found["raw", "creating 16 workers"].wanted is None
    assert not found["ours, 16 workers", "time per pod, 256 workers relative to 16"].is_met


def test_creation_leaves_out_subjects_that_were_not_measured():
    samples = [sample("ours", "16 workers", pods_per_second=1.0, ms_per_pod=1.0)]
    [growth] = ALL["creation"].comparisons(samples)
    assert growth.measured == 1


def test_jobs_are_compared_with_the_baseline():
    rest = {"writes": 1, "operator_cpu": 1, "rss": 1}
    ours = sample("ours", "200 jobs", jobs_per_second=6.0, server_cpu=0.2, **rest)
    alone = sample("baseline", "200 jobs", jobs_per_second=8.0, server_cpu=0.1)
    speed, cpu = ALL["jobs"].comparisons([ours, alone])
    assert (speed.rival, speed.measured, speed.wanted) == ("baseline", 0.75, None)
    assert cpu.measured == 2


@pytest.mark.parametrize(
    ("figure", "case", "better", "worse"),
    [
        pytest.param(
            jobs,
            "200 jobs",
            {"jobs_per_second": 9, "writes": 2, "server_cpu": 1, "operator_cpu": 1, "rss": 1},
            {"jobs_per_second": 4, "writes": 9, "server_cpu": 2, "operator_cpu": 2, "rss": 2},
            id="jobs",
        ),
        pytest.param(memory, "10 running workers", {"rss": 1}, {"rss": 2}, id="memory"),
        pytest.param(
            restart,
            "9 unfinished jobs",
            {"writes": 0, "seconds": 1, "cpu": 1},
            {"writes": 9, "seconds": 2, "cpu": 2},
            id="restart",
        ),
    ],
)
def test_the_better_meets_every_goal_and_the_worse_none(figure, case, better, worse):
    won = [sample("ours", case, **better), sample("tuned", case, **worse)]
    lost = [sample("ours", case, **worse), sample("tuned", case, **better)]
    assert all(each.is_met for each in figure.FIGURE.comparisons(won))
    goals = [each for each in figure.FIGURE.comparisons(lost) if each.wanted]
    assert goals
    assert not any(each.is_met for each in goals)
