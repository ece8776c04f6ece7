"""`mpijob install`, `upgrade`, `uninstall` and `version` on a real API server without nodes."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devcluster.control_plane import ControlPlane
from tests.api.conftest import started_control_plane
from tests.support.kubectl import Kubectl
from tests.support.mpijobs import mpijob

JOBS = "mpijobs.v2beta1.kubeflow.org"
WHOLE = str(Path(__file__).parents[3] / "deploy/v2beta1/mpi-operator.yaml")


class Cluster:
    """A cluster, and what people type to change it."""

    def __init__(self, kubeconfig: Path, home: Path) -> None:
        self._kubeconfig = kubeconfig
        self._kubectl = Kubectl(kubeconfig, home)
        self._environment = {"PATH": os.environ["PATH"], "HOME": str(home)}

    def mpijob(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "mpi_operator", *arguments],
            env=self._environment | {"KUBECONFIG": str(self._kubeconfig)},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def succeeds(self, *arguments: str) -> list[str]:
        done = self.mpijob(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.splitlines()

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        result = self._kubectl(*arguments, stdin=stdin)
        assert result.code == 0, result.errors
        return result.output

    def object(self, *arguments: str) -> Any:
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    def names(self, *arguments: str) -> list[str]:
        """The names of objects, such as `namespace/default`; none where the kind is unknown."""
        result = self._kubectl("get", *arguments, "-o", "name", "--ignore-not-found")
        return result.output.split()

    def clear(self) -> None:
        """Take everything away, and wait until it is gone."""
        # An operator for one namespace leaves the CRD, too.
        if self.names("namespace", "mpi-operator") or self.names("crd", "mpijobs.kubeflow.org"):
            self.succeeds("uninstall", "--delete-jobs", "--yes")


@pytest.fixture(scope="module")
def install_plane() -> Iterator[ControlPlane]:
    with started_control_plane(controller_manager=True) as control_plane:
        yield control_plane


@pytest.fixture(scope="module")
def cluster(install_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    return Cluster(install_plane.kubeconfig(), tmp_path_factory.mktemp("home"))


@pytest.fixture
def empty(cluster: Cluster) -> Cluster:
    """A cluster without the operator. Making it so takes time, so most tests start with one."""
    cluster.clear()
    return cluster


@pytest.fixture
def installed(cluster: Cluster) -> Cluster:
    """A cluster with the operator as it is by default."""
    cluster.succeeds("install", "--no-wait")
    return cluster


def effects(lines: list[str]) -> set[str]:
    return {line.split()[0] for line in lines if line.split()[0].islower()}


def test_a_dry_run_shows_what_would_be_created_and_creates_nothing(empty: Cluster) -> None:
    lines = empty.succeeds("install", "--dry-run")
    assert effects(lines) == {"created"}
    assert lines[-1] == "Nothing was changed: this was a dry run."
    assert empty.names("namespace", "mpi-operator") == []


def test_installing_is_the_same_as_applying_the_file_and_can_be_repeated(empty: Cluster) -> None:
    assert effects(empty.succeeds("install", "--no-wait")) == {"created"}
    assert empty.kubectl("diff", "-f", WHOLE) == ""
    assert effects(empty.succeeds("install", "--no-wait")) == {"unchanged"}
    assert effects(empty.succeeds("upgrade", "--dry-run")) == {"unchanged"}


def test_an_upgrade_shows_and_changes_what_differs(installed: Cluster) -> None:
    options = ("upgrade", "--image=example.com/it:2", "--flag=--threadiness=4")
    planned = installed.succeeds(*options, "--dry-run")
    assert [line.split()[1:3] for line in planned if line.startswith("changed")] == [
        ["Deployment", "mpi-operator"]
    ]
    installed.succeeds(*options, "--no-wait")
    deployment = installed.object("deployment", "mpi-operator", "-n", "mpi-operator")
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "example.com/it:2"
    assert container["args"][-1] == "--threadiness=4"


def test_pods_that_do_not_start_are_reported(cluster: Cluster) -> None:
    done = cluster.mpijob("install", "--timeout=2s")
    assert done.returncode == 124
    assert "the operator in namespace mpi-operator is not ready after 2s" in done.stderr
    assert "kubectl describe pods -n mpi-operator" in done.stderr


def test_jobs_survive_that_the_operator_is_uninstalled_and_installed_again(
    installed: Cluster,
) -> None:
    job = mpijob("kept", "default")
    installed.kubectl("create", "-f", "-", stdin=json.dumps(job))
    lines = installed.succeeds("uninstall")
    assert lines[-1] == "Left 1 MPIJob in place, unmanaged until `mpijob install`."
    [version] = installed.object("crd", "mpijobs.kubeflow.org")["spec"]["versions"]
    assert version["name"] == "v2beta1"
    assert installed.names(JOBS) == ["mpijob.kubeflow.org/kept"]
    assert not installed.names("clusterroles", "-l", "app.kubernetes.io/name=mpi-operator")
    installed.succeeds("install", "--no-wait")
    versions = installed.object("crd", "mpijobs.kubeflow.org")["spec"]["versions"]
    assert len(versions) == 4
    installed.kubectl("delete", JOBS, "kept")


def test_jobs_are_deleted_only_after_a_question(installed: Cluster) -> None:
    installed.kubectl("create", "-f", "-", stdin=json.dumps(mpijob("doomed", "default")))
    assert installed.mpijob("uninstall", "--delete-jobs").returncode != 0  # there is no answer
    assert "mpijob.kubeflow.org/doomed" in installed.names(JOBS)
    installed.succeeds("uninstall", "--delete-jobs", "--yes")
    assert installed.names("crd", "mpijobs.kubeflow.org") == []


def test_an_operator_for_one_namespace_leaves_that_namespace_alone(empty: Cluster) -> None:
    empty.kubectl("create", "namespace", "team-a")
    options = ("--namespace=team-a", "--single-namespace")
    lines = empty.succeeds("install", *options, "--no-wait")
    assert not [line for line in lines if "Cluster" in line]
    empty.succeeds("uninstall", "--namespace=team-a")
    assert empty.names("namespace", "team-a") == ["namespace/team-a"]
    assert empty.names("deployments,roles,serviceaccounts", "-n", "team-a") == [
        "serviceaccount/default"
    ]


def test_a_second_operator_for_all_namespaces_is_refused(installed: Cluster) -> None:
    done = installed.mpijob("install", "--namespace=other")
    assert done.returncode == 1
    assert "already installed in namespace mpi-operator" in done.stderr
    assert "mpijob upgrade --namespace mpi-operator" in done.stderr


def test_what_helm_installed_is_left_to_helm(installed: Cluster) -> None:
    label = "app.kubernetes.io/managed-by"
    where = ("deployment/mpi-operator", "-n", "mpi-operator")
    installed.kubectl("label", *where, f"{label}=Helm")
    for verb, advice in (("upgrade", "helm upgrade"), ("uninstall", "helm uninstall")):
        done = installed.mpijob(verb)
        assert done.returncode == 1
        assert advice in done.stderr
    installed.kubectl("label", *where, f"{label}-")


def test_the_versions_of_everything_are_shown(installed: Cluster) -> None:
    found = json.loads("".join(installed.succeeds("version", "-o", "json")))
    assert found["kubernetes"].startswith("v1.")
    assert found["operator"] == [
        {"image": f"mpioperator/mpi-operator:{found['client']}", "namespace": "mpi-operator"}
    ]
    assert set(found["api"]) == {
        f"kubeflow.org/{version}" for version in ("v2beta1", "v1", "v1alpha2", "v1alpha1")
    }


def test_without_a_cluster_the_error_says_how_to_go_on(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "missing", tmp_path)
    for verb in ("install", "version"):
        done = cluster.mpijob(verb)
        assert done.returncode == 1
        assert done.stderr.startswith("mpijob: ")
        assert "Traceback" not in done.stderr
    assert done.stdout.splitlines() == cluster.succeeds(
        "version", "--client"
    )  # its own version is known
