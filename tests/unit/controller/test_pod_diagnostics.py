"""Why pods do not run, and how that is reported."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from mpi_operator.controller import pod_state
from mpi_operator.controller.pod_diagnostics import diagnose_pods
from mpi_operator.local.times import timestamp
from tests.support.mpijobs import template
from tests.support.observations import (
    NOW,
    a_job,
    a_launcher,
    a_launcher_pod,
    a_worker,
    complete,
    failed,
    observed,
    started,
    terminated,
    unschedulable,
    waiting,
)

JOB = a_job(3)


def restarted(exit_code, message=""):
    [status] = waiting("CrashLoopBackOff", "back-off 5m0s restarting failed container")
    [ended] = terminated(exit_code, message)
    return [status | {"lastState": ended["state"]}]


def on_a_node(pod):
    return replace(pod, spec=replace(pod.spec, node_name="n1"))


def starting(seconds):
    """A pod that has been on its node for so long, and was in a queue before."""
    taken = timestamp(NOW - timedelta(seconds=seconds))
    creating = waiting("ContainerCreating")
    return a_worker(JOB, 0, "Pending", startTime=taken, containerStatuses=creating)


def unready(seconds=60, **reason):
    """A pod that has run for so long and was never ready."""
    conditions = [{"type": "Ready", "status": "False", **reason}]
    return a_worker(JOB, 0, conditions=conditions, containerStatuses=started(seconds))


@pytest.mark.parametrize(
    ("status", "diagnosis"),
    [
        pytest.param(
            {"conditions": unschedulable("no nodes")}, ("Unschedulable", "no nodes"), id="no node"
        ),
        pytest.param(
            {"containerStatuses": waiting("ImagePullBackOff", "Back-off pulling image x")},
            ("ImagePullFailed", "container mpi: Back-off pulling image x"),
            id="no image",
        ),
        pytest.param(
            {"containerStatuses": waiting("ErrImageNeverPull")},
            ("ImagePullFailed", "container mpi: ErrImageNeverPull"),
            id="without a message, its reason",
        ),
        pytest.param(
            {"containerStatuses": waiting("CreateContainerConfigError", 'secret "x" not found')},
            ("ContainerConfigError", 'container mpi: secret "x" not found'),
            id="something it needs is missing",
        ),
        pytest.param(
            {"containerStatuses": restarted(7, "boom\n")},
            ("CrashLoop", "container mpi ended with exit code 7: boom"),
            id="it crashes again and again",
        ),
        pytest.param(
            {"initContainerStatuses": waiting("ErrImagePull", "no such image", name="init")},
            ("ImagePullFailed", "container init: no such image"),
            id="an init container",
        ),
        pytest.param(
            {"containerStatuses": waiting("ContainerCreating")},
            (
                "SlowStart",
                "node n1 has not started the pod. A volume may be missing, the image may be large, "
                "or the node may be lost: see kubectl describe pod pi-worker-0 -n lab",
            ),
            id="starting",
        ),
        pytest.param({}, None, id="just created"),
        pytest.param(
            {
                "conditions": [
                    {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
                ]
            },
            None,
            id="held back by a gate: on purpose",
        ),
    ],
)
def test_the_diagnosis_of_a_pod(status, diagnosis):
    assert pod_state.diagnosis(on_a_node(a_worker(JOB, 0, "Pending", **status))) == diagnosis


@pytest.mark.parametrize(
    ("reason", "diagnosis"),
    [
        pytest.param(
            {}, ("NodeUnreachable", "node n1 has stopped reporting"), id="its node is silent"
        ),
        pytest.param(
            {"reason": "ContainersNotReady"},
            (
                "NotReady",
                "running on n1 but not ready: a readiness probe fails, or the node has stopped "
                "reporting",
            ),
            id="its node reports it as not ready",
        ),
    ],
)
def test_the_diagnosis_of_a_pod_that_ran(reason, diagnosis):
    assert pod_state.diagnosis(on_a_node(unready(**reason))) == diagnosis


NO_SSHD = (
    "pi-worker-0: running on n1, but sshd is not listening yet, or the node has stopped "
    "reporting: see kubectl logs pi-worker-0 -n lab"
)
NO_ANSWER = (
    "pi-worker-0: running on n1 but not ready: a readiness probe fails, or the node has stopped "
    "reporting"
)
USERS_PROBE = {"readinessProbe": {"tcpSocket": {"port": 22}}}


def with_worker(**container):
    """A job whose workers have this container and a second one."""
    containers = [{"name": "mpi", "image": "x", **container}, {"name": "beside", "image": "x"}]
    return a_job(worker={"template": template(containers=containers)})


@pytest.mark.parametrize(
    ("job", "late", "message"),
    [
        pytest.param(with_worker(), "mpi", NO_SSHD, id="our probe asks whether its sshd listens"),
        pytest.param(with_worker(), "beside", NO_ANSWER, id="another is not ready"),
        pytest.param(with_worker(**USERS_PROBE), "mpi", NO_ANSWER, id="a probe of the user"),
        pytest.param(with_worker(command=["serve"]), "mpi", NO_ANSWER, id="it is no sshd"),
    ],
)
def test_a_worker_whose_sshd_does_not_listen_is_reported(job, late, message):
    [first] = started(60)
    statuses = [first | {"name": name, "ready": name != late} for name in ("mpi", "beside")]
    pod = on_a_node(a_worker(job, 0, ready=False, containerStatuses=statuses))
    [problem] = diagnose_pods(observed(job, [pod]), NOW).problems
    assert (problem.reason, problem.message) == ("NotReady", message)


def test_a_container_that_ended_does_not_make_a_pod_unready():
    ended = [*started(60), *terminated(0, name="beside")]
    pod = a_worker(JOB, 0, ready="False", containerStatuses=ended)
    assert pod_state.diagnosis(pod) is None


@pytest.mark.parametrize(
    ("pod", "wait"),
    [
        pytest.param(lambda: starting(59), 1, id="on its node for 59s"),
        pytest.param(lambda: starting(60), None, id="on its node for 60s"),
        pytest.param(lambda: unready(29, reason="ContainersNotReady"), 1, id="runs for 29s"),
        pytest.param(lambda: unready(30, reason="ContainersNotReady"), None, id="runs for 30s"),
    ],
)
def test_a_slow_start_is_not_reported_at_once(pod, wait):
    seen = observed(JOB, [pod()])
    assert bool(diagnose_pods(seen, NOW).problems) == (wait is None)
    assert diagnose_pods(seen, NOW).requeue_after == (timedelta(seconds=wait) if wait else None)


@pytest.mark.parametrize(
    ("age", "count", "wait"), [(9, 0, 1), (10, 1, None), (600, 1, None)], ids=["9s", "10s", "600s"]
)
def test_a_problem_is_reported_only_if_it_lasts(age, count, wait):
    pod = a_worker(JOB, 0, "Pending", age=timedelta(seconds=age), conditions=unschedulable())
    seen = observed(JOB, [pod])
    assert len(diagnose_pods(seen, NOW).problems) == count
    assert diagnose_pods(seen, NOW).requeue_after == (timedelta(seconds=wait) if wait else None)


def test_one_pod_stands_for_all_of_its_role():
    pending = [a_worker(JOB, index, "Pending", conditions=unschedulable()) for index in (2, 0)]
    [problem] = diagnose_pods(observed(JOB, [*pending, a_worker(JOB, 1)]), NOW).problems
    sentence = "2 of 3 workers are affected, for example pi-worker-0: 0/3 nodes are available"
    assert problem.message == sentence
    assert not problem.is_fatal


def test_each_role_and_reason_is_reported():
    seen = observed(
        JOB,
        [
            a_worker(JOB, 0, "Pending", conditions=unschedulable()),
            a_worker(JOB, 1, "Pending", containerStatuses=waiting("ErrImagePull", "no")),
        ],
        launcher_pods=(a_launcher_pod(JOB, "Pending", conditions=unschedulable()),),
    )
    assert [problem.message for problem in diagnose_pods(seen, NOW).problems] == [
        "pi-launcher-0: 0/3 nodes are available",
        "pi-worker-0: 0/3 nodes are available",
        "pi-worker-1: container mpi: no",
    ]


def test_a_terminating_pod_has_no_problem():
    pod = a_worker(JOB, 0, "Pending", deleted=timedelta(0), conditions=unschedulable())
    assert diagnose_pods(observed(JOB, [pod]), NOW).problems == ()


def test_a_terminating_pod_on_a_silent_node_is_reported():
    silent = [{"type": "Ready", "status": "False"}]
    pod = a_worker(JOB, 0, deleted=timedelta(0), conditions=silent)
    [problem] = diagnose_pods(observed(JOB, [pod]), NOW).problems
    assert problem.reason == "NodeUnreachable"


EVICTED = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}


@pytest.mark.parametrize(
    ("reason", "why"),
    [
        pytest.param({"message": "Taint manager: no"}, "Taint manager: no", id="with a message"),
        pytest.param({}, "DeletionByTaintManager", id="with a reason only"),
    ],
)
def test_an_evicted_pod_is_reported_with_its_node(reason, why):
    # It was not ready yet when its node was lost, so nothing else reports that.
    young = {"type": "Ready", "status": "False", "reason": "ContainersNotReady"}
    pod = a_worker(JOB, 0, deleted=timedelta(0), conditions=[young, {**EVICTED, **reason}])
    pod = replace(pod, spec=replace(pod.spec, node_name="n1"))
    [problem] = diagnose_pods(observed(JOB, [pod]), NOW).problems
    assert (problem.reason, problem.message) == ("Evicted", f"pi-worker-0: evicted from n1: {why}")


def test_a_pod_that_is_no_longer_to_be_evicted_is_not_reported():
    pod = a_worker(JOB, 0, conditions=[{**EVICTED, "status": "False"}])
    assert diagnose_pods(observed(JOB, [pod]), NOW).problems == ()


def test_a_launcher_on_a_silent_node_is_reported_as_irreplaceable():
    silent = [{"type": "Ready", "status": "False"}]
    launcher = on_a_node(a_launcher_pod(JOB, "Running", conditions=silent))
    [found] = diagnose_pods(observed(JOB, launcher_pods=(launcher,)), NOW).problems
    assert found.message == (
        "pi-launcher-0: node n1 has stopped reporting. The pod may still be running, so Kubernetes "
        "does not start another launcher until the node is back or the pod is deleted"
    )


# --- a launcher without a pod -----------------------------------------------------------------


def podless(started=60, *, lost=None, suspend=False, **status):
    """A launcher that started so many seconds ago, and has no pod."""
    since = NOW - timedelta(seconds=started)
    return observed(
        JOB,
        launcher=a_launcher(JOB, suspend=suspend, startTime=timestamp(since), **status),
        launcher_pod_lost=NOW - timedelta(seconds=lost) if lost is not None else None,
    )


def test_a_launcher_without_a_pod_is_reported():
    [problem] = diagnose_pods(podless(), NOW).problems
    assert problem.reason == "LauncherPodMissing"
    assert not problem.is_fatal
    assert problem.message == (
        "Job pi-launcher has no pod: see kubectl describe job pi-launcher -n lab"
    )


@pytest.mark.parametrize(
    ("started", "lost", "wait"),
    [
        pytest.param(9, None, 1, id="just started"),
        pytest.param(10, None, None, id="started a while ago"),
        pytest.param(3600, 0, 10, id="had a pod until now"),
        pytest.param(3600, 10, None, id="had a pod a while ago"),
        pytest.param(4, 600, 6, id="resumed since it had a pod"),
    ],
)
def test_a_missing_launcher_pod_is_reported_only_if_it_lasts(started, lost, wait):
    seen = podless(started, lost=lost)
    assert len(diagnose_pods(seen, NOW).problems) == (0 if wait else 1)
    assert diagnose_pods(seen, NOW).requeue_after == (timedelta(seconds=wait) if wait else None)


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(observed(JOB), id="there is no launcher"),
        pytest.param(observed(JOB, launcher=a_launcher(JOB)), id="it has no start time yet"),
        pytest.param(podless(suspend=True), id="it is suspended"),
        pytest.param(podless(**complete()), id="it succeeded"),
        pytest.param(podless(**failed()), id="it failed"),
        pytest.param(
            observed(
                JOB,
                launcher=a_launcher(JOB, startTime=timestamp(NOW - timedelta(hours=1))),
                launcher_pods=(a_launcher_pod(JOB, "Failed"),),
            ),
            id="it had one that failed",
        ),
    ],
)
def test_a_launcher_that_needs_no_pod_is_not_reported(seen):
    assert diagnose_pods(seen, NOW).problems == ()
    assert diagnose_pods(seen, NOW).requeue_after is None


@pytest.mark.parametrize(
    ("status", "output"),
    [
        pytest.param(
            {"containerStatuses": terminated(1, " last words \n")}, "last words", id="some output"
        ),
        pytest.param({"containerStatuses": terminated(0, "all is well")}, "", id="succeeded"),
        pytest.param({"containerStatuses": terminated(1)}, "", id="no output"),
        pytest.param({}, "", id="nothing is known"),
        pytest.param(
            {"containerStatuses": terminated(1, "\n".join(map(str, range(30))))},
            "\n".join(map(str, range(20, 30))),
            id="too long",
        ),
        pytest.param(
            {
                "initContainerStatuses": terminated(1, "first", name="init"),
                "containerStatuses": terminated(1, "second"),
            },
            "second",
            id="two of them",
        ),
    ],
)
def test_the_last_output_of_a_pod(status, output):
    assert pod_state.last_words(a_worker(JOB, 0, "Failed", **status)) == output


def test_a_signal_is_reported_instead_of_an_exit_code():
    pod = a_worker(JOB, 0, "Failed", containerStatuses=terminated(0, signal=9))
    assert pod_state.how_it_ended(pod) == "container mpi ended with signal 9"
