"""Containers of a node, ended behind the back of the kubelet."""

import subprocess

from devcluster import containerd
from devcluster.cluster import Cluster
from mpi_operator.kube.resources import Manifest


def kill_container(cluster: Cluster, pod: Manifest) -> None:
    """Kill the main process of a pod's only container; it has no time for anything."""
    [status] = pod["status"]["containerStatuses"]
    node = int(pod["spec"]["nodeName"].removeprefix("node-"))
    container = status["containerID"].removeprefix("containerd://")
    kill = ["ctr", "-n", containerd.NAMESPACE, "tasks", "kill", "-s", "SIGKILL", container]
    subprocess.run(cluster.node_command(node, kill), check=True)
