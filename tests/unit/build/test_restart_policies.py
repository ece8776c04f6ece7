"""Restart policies that pods do not have."""

import pytest

from mpi_operator.build.launcher_job import launcher_job
from mpi_operator.build.worker_pod import worker_pod
from tests.unit.build.jobs import NONE, make_job

PREFIX = "mpi-operator.kubeflow.org/"
LAUNCHER, WORKER, MAIN = (
    f"{PREFIX}launcher-restart-policy",
    f"{PREFIX}worker-restart-policy",
    f"{PREFIX}main-container",
)


def launcher_spec(**changes):
    return launcher_job(make_job(**changes), NONE, suspend=False)["spec"]


@pytest.mark.parametrize("field", ["Never", "OnFailure"])
@pytest.mark.parametrize(
    ("annotations", "policy"),
    [
        pytest.param({}, None, id="that of the field"),
        pytest.param({WORKER: "Always"}, "Always", id="Always"),
        pytest.param({WORKER: "ExitCode"}, "Never", id="ExitCode: the operator decides"),
        pytest.param({WORKER: "Sometimes"}, None, id="a wrong value is ignored"),
        pytest.param({LAUNCHER: "ExitCode"}, None, id="that of the launcher is another one"),
    ],
)
def test_the_restart_policy_of_workers(field, annotations, policy):
    job = make_job(annotations=annotations, worker={"restartPolicy": field})
    assert worker_pod(job, 0, NONE)["spec"]["restartPolicy"] == (policy or field)


@pytest.mark.parametrize("field", ["Never", "OnFailure"])
@pytest.mark.parametrize(
    "annotations",
    [
        pytest.param({}, id="no annotation"),
        pytest.param({LAUNCHER: "Always"}, id="a Job cannot do that"),
        pytest.param({WORKER: "ExitCode"}, id="that of the workers is another one"),
    ],
)
def test_a_launcher_without_rules_for_exit_codes(field, annotations):
    spec = launcher_spec(annotations=annotations, launcher={"restartPolicy": field})
    assert spec["template"]["spec"]["restartPolicy"] == field
    assert "podFailurePolicy" not in spec


@pytest.mark.parametrize("field", ["Never", "OnFailure"])
def test_a_launcher_whose_exit_code_decides(field):
    spec = launcher_spec(annotations={LAUNCHER: "ExitCode"}, launcher={"restartPolicy": field})
    assert spec["template"]["spec"]["restartPolicy"] == "Never"
    assert spec["podFailurePolicy"] == {
        "rules": [
            {
                "action": "Ignore",
                "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
            },
            {
                "action": "FailJob",
                "onExitCodes": {
                    "containerName": "mpi",
                    "operator": "In",
                    "values": [*range(1, 128)],
                },
            },
        ]
    }


def test_it_is_the_main_container_whose_exit_code_decides():
    containers = [{"name": "proxy"}, {"name": "main"}]
    spec = launcher_spec(
        annotations={LAUNCHER: "ExitCode", MAIN: "main"},
        launcher={"template": {"spec": {"containers": containers}}},
    )
    _, rule = spec["podFailurePolicy"]["rules"]
    assert rule["onExitCodes"]["containerName"] == "main"
