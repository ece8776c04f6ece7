"""`mpijob run` has to start fast, so the local cluster imports only what it uses."""

import json
import subprocess
import sys

HEAVY = {"aiohttp", "cryptography", "prometheus_client"}
# What the cluster and the Job controller are made of, and of our own packages nothing above them.
PROGRAM = """
import json, sys
import mpi_operator.local.apiserver.cluster, mpi_operator.local.jobs.job_controller
print(json.dumps(sorted(sys.modules)))
"""


def test_the_local_cluster_imports_neither_http_nor_cryptography_nor_metrics():
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True)
    modules = set(json.loads(ended.stdout))
    assert not modules & HEAVY


def test_the_local_cluster_knows_nothing_about_mpi_jobs():
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True)
    packages = {".".join(name.split(".")[:2]) for name in json.loads(ended.stdout)}
    ours = {name for name in packages if name.startswith("mpi_operator.")}
    assert ours == {"mpi_operator.kube", "mpi_operator.local"}
