"""The pod failure policy of a Job, as far as launchers use it: `Ignore` and `FailJob`.

The first rule that matches a failed pod decides. A pod that no rule matches counts as failed, as
it does without a policy.
"""

from mpi_operator.kube.objects import Compact

from .job_objects import ContainerStatus, Job, JobPod, OnExitCodes, PodFailurePolicyRule

REASON = "PodFailurePolicy"


class Verdict(Compact, frozen=True):
    """What follows from a failed pod."""

    is_counted: bool = True
    fails_job: str = ""  # the message, if the Job fails


def judge(job: Job, pod: JobPod) -> Verdict:
    """Apply the rules to a pod that has failed."""
    policy = job.spec.pod_failure_policy
    for index, rule in enumerate(policy.rules if policy else ()):
        if what := _match(rule, pod):
            return _verdict(rule.action, f"{what} matching {rule.action} rule at index {index}")
    return Verdict()


def _verdict(action: str, message: str) -> Verdict:
    match action:
        case "Ignore":
            return Verdict(is_counted=False)
        case "FailJob":
            return Verdict(fails_job=message)
        case _:
            return Verdict()


def _match(rule: PodFailurePolicyRule, pod: JobPod) -> str:
    """What of a pod matches a rule, in the words of Kubernetes; empty if nothing does."""
    name = f"{pod.metadata.namespace}/{pod.metadata.name}"
    if rule.on_exit_codes is not None:
        found = _matching_container(rule.on_exit_codes, pod)
        code = _exit_code(found) if found else 0
        return (
            f"Container {found.name} for pod {name} failed with exit code {code}" if found else ""
        )
    for wanted in rule.on_pod_conditions:
        if any((each.type, each.status) == (wanted.type, wanted.status) for each in pod.conditions):
            return f"Pod {name} has condition {wanted.type}"
    return ""


def _matching_container(wanted: OnExitCodes, pod: JobPod) -> ContainerStatus | None:
    containers = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    named = (each for each in containers if wanted.container_name in (None, each.name))
    return next((each for each in named if _is_match(wanted, _exit_code(each))), None)


def _is_match(wanted: OnExitCodes, code: int) -> bool:
    return code != 0 and (code in wanted.values) == (wanted.operator == "In")


def _exit_code(container: ContainerStatus) -> int:
    return container.state.terminated.exit_code if container.state.terminated else 0
