"""Pod templates that the server calls invalid: nothing but another job helps."""

import pytest

from tests.support.jobs import Jobs
from tests.support.mpijobs import mpijob, template
from tests.support.waiting import until

# The CRD's schema takes this, the rules for pods do not.
_INVALID = template(nodeSelector={"zone": "not a label value!"})
_WORDS = "a valid label must be an empty string or consist of alphanumeric characters"


@pytest.mark.parametrize("policy", ["AtStartup", "WaitForWorkersReady"])
async def test_an_invalid_worker_fails_the_job_with_the_server_s_message(
    shared: Jobs, policy: str
) -> None:
    job = f"bad-worker-{policy.lower()}"
    await shared.submit(mpijob(job, worker={"template": _INVALID}, launcherCreationPolicy=policy))
    await shared.becomes(job, "Failed", reason="InvalidPodTemplate")
    failed = await shared.condition(job, "Failed")
    assert failed is not None
    assert f"{job}-worker-" in failed["message"]
    assert _WORDS in failed["message"]
    assert await shared.event_messages(job, "InvalidPodTemplate") == [failed["message"]]
    assert "completionTime" in await shared.status(job)
    assert await shared.pods(job) == []


async def test_an_invalid_launcher_fails_the_job_and_the_workers_go(shared: Jobs) -> None:
    policy = {"cleanPodPolicy": "Running"}
    await shared.submit(mpijob("bad-launcher", launcher={"template": _INVALID}, runPolicy=policy))
    await shared.becomes("bad-launcher", "Failed", reason="InvalidPodTemplate")
    failed = await shared.condition("bad-launcher", "Failed")
    assert failed is not None
    assert "bad-launcher-launcher" in failed["message"]
    assert _WORDS in failed["message"]
    await until(lambda: shared.has_workers("bad-launcher", 0))


async def test_a_bad_edit_of_a_job_that_runs_is_reported_and_is_not_its_end(shared: Jobs) -> None:
    await shared.submit(mpijob("bad-edit"))
    launcher = await shared.start("bad-edit", workers=2)
    await shared.change(
        "bad-edit", mpiReplicaSpecs={"Worker": {"replicas": 3, "template": _INVALID}}
    )
    [message] = await shared.event_messages("bad-edit", "InvalidPodTemplate")
    assert "bad-edit-worker-2" in message
    await shared.observes("bad-edit", 2)
    assert await shared.has_condition("bad-edit", "Running")
    assert await shared.condition("bad-edit", "Failed") is None

    good = {"nodeSelector": {"zone": None}}
    await shared.change("bad-edit", mpiReplicaSpecs={"Worker": {"template": {"spec": good}}})
    await until(lambda: shared.has_workers("bad-edit", 3))
    await shared.succeed(launcher)
    await shared.becomes("bad-edit", "Succeeded")


async def test_a_launcher_that_cannot_be_resumed_is_reported_and_waits_for_a_better_edit(
    shared: Jobs,
) -> None:
    await shared.submit(mpijob("bad-resume", runPolicy={"suspend": True}))
    await shared.becomes("bad-resume", "Suspended")
    await shared.change(
        "bad-resume",
        runPolicy={"suspend": False},
        mpiReplicaSpecs={"Launcher": {"template": _INVALID}},
    )
    await shared.becomes("bad-resume", "Running", "False", "Rejected")
    [message] = await shared.event_messages("bad-resume", "Rejected")
    assert "bad-resume-launcher" in message
    assert _WORDS in message
    assert await shared.condition("bad-resume", "Failed") is None

    good = {"nodeSelector": {"zone": "a"}}
    await shared.change("bad-resume", mpiReplicaSpecs={"Launcher": {"template": {"spec": good}}})
    await shared.finish("bad-resume", workers=2)
