"""The one line about fields that have no effect on this machine."""

from mpi_operator.api.decode import decode_job
from mpi_operator.cli.job_input import without_effect
from tests.support.mpijobs import mpijob

BOTH = {"cpu": "1", "memory": "1Gi"}


def notice(resources=None, security=None, **pod):
    container = {"name": "mpi", "image": "i"}
    container |= {"resources": resources} if resources else {}
    container |= {"securityContext": security} if security else {}
    template = {"spec": {"containers": [container], **pod}}
    role = {"template": template}
    return without_effect.notice([decode_job(mpijob("pi", launcher=role, worker=role))])


def test_fields_of_all_pods_are_named_once():
    found = notice(
        {"limits": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": 1}, "requests": BOTH},
        {"runAsUser": 1000, "capabilities": {"add": ["IPC_LOCK"]}},
        nodeSelector={"disk": "fast"},
        tolerations=[{"operator": "Exists"}],
    )
    assert found == (
        "No effect on this machine: nodeSelector, tolerations, runAsUser, capabilities,"
        " cpu limits, memory limits"
    )


def test_a_limit_without_a_request_counts_as_one():
    found = notice({"limits": BOTH, "requests": {"memory": "1Gi"}})
    assert found == "No effect on this machine: cpu limits (except as requests), memory limits"


def test_nothing_is_said_about_what_is_honoured_or_only_forbids():
    assert (
        notice(
            {"requests": {"cpu": "1"}, "limits": {"nvidia.com/gpu": 1}},
            {"runAsNonRoot": True, "privileged": False},
            hostNetwork=True,
        )
        == ""
    )
