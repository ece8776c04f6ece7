"""Jobs that another controller manages."""

from mpi_operator.kube.resources import CONFIG_MAPS, JOBS, PODS, SECRETS, SERVICES
from tests.support.jobs import Jobs
from tests.support.mpijobs import mpijob
from tests.support.waiting import until


async def test_a_job_of_another_manager_is_left_alone(shared: Jobs) -> None:
    policy = {"managedBy": "kueue.x-k8s.io/multikueue"}
    await shared.submit(mpijob("elsewhere", runPolicy=policy))
    await shared.submit(mpijob("here"))
    await shared.finish("here", workers=2)  # so it has reconciled both
    assert "status" not in await shared.job("elsewhere")
    assert await shared.events("elsewhere") == []
    for resource in (PODS, JOBS, SERVICES, CONFIG_MAPS, SECRETS):
        found = await shared.client.list(resource, shared.namespace)
        names = [each["metadata"]["name"] for each in found.items]
        assert [name for name in names if name.startswith("elsewhere")] == []


async def test_a_job_that_names_us_as_its_manager_runs(shared: Jobs) -> None:
    policy = {"managedBy": "kubeflow.org/mpi-operator", "cleanPodPolicy": "All"}
    await shared.submit(mpijob("explicit", runPolicy=policy))
    await shared.finish("explicit", workers=2)
    await until(lambda: shared.has_workers("explicit", 0))
