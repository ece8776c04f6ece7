"""Calls methods of `TrainingClient` as they are asked for; runs in the client's own environment.

Each line of standard input is a call, and each line of standard output its answer, both in JSON.
"""

import json
import os
import sys
from typing import Any

from kubeflow.training import TrainingClient
from kubeflow.training.utils.utils import FakeResponse
from kubernetes.client import ApiClient


def answer(client: Any, method: str, arguments: dict[str, Any]) -> dict[str, Any]:
    if "job" in arguments:
        written = FakeResponse(arguments["job"])
        arguments["job"] = client.api_client.deserialize(written, "KubeflowOrgV1MPIJob")
    if "expected_conditions" in arguments:
        arguments["expected_conditions"] = set(arguments["expected_conditions"])
    try:
        returned = getattr(client, method)(**arguments)
    except Exception as error:
        return {"error": type(error).__name__, "message": str(error)}
    return {"returned": ApiClient().sanitize_for_serialization(returned)}


def main() -> None:
    kubeconfig, namespace = sys.argv[1:]
    client = TrainingClient(config_file=kubeconfig, namespace=namespace, job_kind="MPIJob")
    # The client prints what it follows, and standard output is for answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    for line in sys.stdin:
        print(json.dumps(answer(client, *json.loads(line))), file=answers)


if __name__ == "__main__":
    main()
