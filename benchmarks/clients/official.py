"""The official Python client, used as in its examples: typed, with threads for concurrency."""

import gc
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from kubernetes import client, config
from kubernetes import watch as kubernetes_watch

from benchmarks.measure import Cost, Task, timed, traced
from benchmarks.pods import worker_pods


def create(task: Task) -> Cost:
    cost, api = Cost(), _api(task)
    first, rest = worker_pods(task, "official")

    def create_one(pod: dict[str, Any]) -> None:
        api.create_namespaced_pod(task.namespace, pod)

    with ThreadPoolExecutor(task.concurrency) as threads:
        list(threads.map(create_one, first))
        with timed(cost, task.count):
            list(threads.map(create_one, rest))
    return cost


def list_pods(task: Task) -> Cost:
    cost, api = Cost(), _api(task)
    with timed(cost, task.count):
        listed = api.list_namespaced_pod(task.namespace)
    assert len(listed.items) == task.count
    return cost


def watch(task: Task) -> Cost:
    cost, api = Cost(), _api(task)
    stream = kubernetes_watch.Watch().stream(
        api.list_namespaced_pod, task.namespace, resource_version="0", timeout_seconds=60
    )
    objects: list[Any] = []
    with timed(cost, task.count):
        while len(objects) < task.count:
            objects.append(next(stream)["object"])
    return cost


def cache(task: Task) -> Cost:
    cost, api = Cost(count=task.count), _api(task)
    api.list_namespaced_pod(task.namespace, limit=1)  # loads the models
    with traced(cost):
        kept = {each.metadata.name: each for each in api.list_namespaced_pod(task.namespace).items}
        gc.collect()
    assert len(kept) == task.count
    return cost


def _api(task: Task) -> Any:
    config.load_kube_config(task.kubeconfig)
    settings = client.Configuration.get_default_copy()
    settings.connection_pool_maxsize = task.concurrency
    return client.CoreV1Api(client.ApiClient(settings))
