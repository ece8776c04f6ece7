"""The labels of a Job's pods: the API server sets them, the Job controller selects by them."""

CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
JOB_NAME = "batch.kubernetes.io/job-name"


def tracking_labels(name: str, uid: str) -> dict[str, str]:
    """The labels of a Job's pods, with and without the prefix that Kubernetes 1.27 added."""
    return {CONTROLLER_UID: uid, "controller-uid": uid, JOB_NAME: name, "job-name": name}
