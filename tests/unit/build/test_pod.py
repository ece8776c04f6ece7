"""What holds for the pods of both roles."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from mpi_operator.api import MPIJob
from mpi_operator.build.launcher_job import launcher_job
from mpi_operator.build.settings import Settings
from mpi_operator.build.worker_pod import worker_pod
from mpi_operator.kube.resources import Manifest
from tests.unit.build.jobs import (
    NONE,
    PLUGINS,
    VOLCANO,
    environment,
    first_container,
    make_job,
    mounts,
    pods,
    volumes,
)

Pod = Callable[..., Manifest]


def launcher(job: MPIJob, settings: Settings = NONE) -> Manifest:
    template: Manifest = launcher_job(job, settings, suspend=False)["spec"]["template"]
    return template


def worker(job: MPIJob, settings: Settings = NONE) -> Manifest:
    return worker_pod(job, 0, settings)


@pytest.fixture(params=[launcher, worker], ids=["launcher", "worker"])
def pod(request: pytest.FixtureRequest) -> Pod:
    return request.param  # type: ignore[no-any-return]


def job_of(role: Manifest | None = None, **spec: Any) -> MPIJob:
    """A job whose launcher and workers are alike."""
    return make_job(launcher=role or {}, worker=role or {}, **spec)


def test_labels_and_annotations_of_the_template_are_kept(pod: Pod):
    role = pods()
    role["template"]["metadata"] = {"labels": {"team": "a"}, "annotations": {"note": "b"}}
    metadata = pod(job_of(role))["metadata"]
    assert metadata["labels"]["team"] == "a"
    assert metadata["annotations"] == {"note": "b"}


def test_our_labels_take_precedence(pod: Pod):
    role = pods()
    role["template"]["metadata"] = {"labels": {"training.kubeflow.org/job-name": "another"}}
    labels = pod(job_of(role))["metadata"]["labels"]
    assert labels["training.kubeflow.org/job-name"] == "pi"


def test_nothing_else_of_the_templates_metadata_is_carried(pod: Pod):
    role = pods()
    role["template"]["metadata"] = {"name": "x", "namespace": "y", "finalizers": ["example.com/z"]}
    metadata = pod(job_of(role))["metadata"]
    assert "finalizers" not in metadata
    assert metadata.get("name") != "x"
    assert metadata.get("namespace") != "y"


def test_without_annotations_there_are_none(pod: Pod):
    assert "annotations" not in pod(job_of())["metadata"]


@pytest.mark.parametrize(
    ("given", "policy"),
    [
        pytest.param({}, None, id="on the pod network the default stays"),
        pytest.param({"hostNetwork": False}, None, id="the same, written out"),
        pytest.param(
            {"hostNetwork": True}, "ClusterFirstWithHostNet", id="on the node's network names work"
        ),
        pytest.param(
            {"hostNetwork": True, "dnsPolicy": None},
            "ClusterFirstWithHostNet",
            id="a null policy is none",
        ),
        pytest.param(
            {"hostNetwork": True, "dnsPolicy": "ClusterFirst"},
            "ClusterFirstWithHostNet",
            id="the default policy, written out",
        ),
        pytest.param({"hostNetwork": True, "dnsPolicy": "None"}, "None", id="a policy of choice"),
        pytest.param({"dnsPolicy": "Default"}, "Default", id="a policy on the pod network"),
    ],
)
def test_dns_policy(pod: Pod, given, policy):
    assert pod(job_of(pods(given)))["spec"].get("dnsPolicy") == policy


def test_a_pod_is_found_under_the_domain_of_its_job(pod: Pod):
    spec = pod(job_of(pods({"hostname": "x", "subdomain": "y"})))["spec"]
    assert spec["hostname"].startswith("pi-")
    assert spec["subdomain"] == "pi"


def test_the_restart_policy_is_that_of_the_role(pod: Pod):
    role = pods({"restartPolicy": "Always"}) | {"restartPolicy": "OnFailure"}
    assert pod(job_of(role))["spec"]["restartPolicy"] == "OnFailure"


def test_the_users_environment_comes_first_and_takes_precedence(pod: Pod):
    given = [
        {"name": "A", "value": "1"},
        {"name": "K_MPI_JOB_ROLE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ]
    variables = first_container(pod(job_of(pods(env=given)))["spec"])["env"]
    assert variables[:2] == given
    assert [each["name"] for each in variables].count("K_MPI_JOB_ROLE") == 1


@pytest.mark.parametrize(
    ("given", "policy"),
    [
        pytest.param({}, "FallbackToLogsOnError", id="the last lines of a failed container"),
        pytest.param(
            {"terminationMessagePolicy": None}, "FallbackToLogsOnError", id="null is no choice"
        ),
        pytest.param({"terminationMessagePolicy": "File"}, "File", id="the user's choice"),
    ],
)
def test_the_termination_message_policy(pod: Pod, given, policy):
    container = first_container(pod(job_of(pods(**given)))["spec"])
    assert container["terminationMessagePolicy"] == policy


def test_only_the_first_container_has_additions(pod: Pod):
    sidecar = {"name": "proxy", "image": "example.com/proxy:1"}
    role = pods()
    role["template"]["spec"]["containers"].append(sidecar)
    assert pod(job_of(role))["spec"]["containers"][1:] == [sidecar]


def test_the_keys_are_mounted_for_root_with_a_strict_mode(pod: Pod):
    spec = pod(job_of())["spec"]
    assert volumes(spec)["ssh-auth"] == {
        "name": "ssh-auth",
        "secret": {
            "secretName": "pi-ssh",
            "items": [
                {"key": "ssh-privatekey", "path": "id_rsa"},
                {"key": "ssh-publickey", "path": "id_rsa.pub"},
                {"key": "ssh-publickey", "path": "authorized_keys"},
            ],
            "defaultMode": 384,
        },
    }
    assert mounts(spec)["/root/.ssh"] == "ssh-auth"


@pytest.mark.parametrize(
    ("path", "mode"),
    [
        pytest.param("/root/.ssh", 384, id="root"),
        pytest.param("/root/.ssh/", 384, id="root, with a slash"),
        pytest.param("/home/mpiuser/.ssh", None, id="another user could not read a strict one"),
    ],
)
def test_the_mode_of_the_keys_depends_on_the_user(pod: Pod, path, mode):
    spec = pod(job_of(sshAuthMountPath=path))["spec"]
    assert volumes(spec)["ssh-auth"]["secret"].get("defaultMode") == mode
    assert mounts(spec)[path] == "ssh-auth"


def test_the_users_volumes_and_mounts_come_first(pod: Pod):
    volume, mount = {"name": "data", "emptyDir": {}}, {"name": "data", "mountPath": "/data"}
    spec = pod(job_of(pods({"volumes": [volume]}, volumeMounts=[mount])))["spec"]
    assert spec["volumes"][0] == volume
    assert first_container(spec)["volumeMounts"][0] == mount


OWN = [{"name": "ssh-auth", "secret": {"secretName": "mine"}}]
OTHER = [{"name": "keys", "secret": {"secretName": "mine"}}]


@pytest.mark.parametrize(
    ("given", "mounted", "expected", "ours"),
    [
        pytest.param([], [], "ssh-auth", "ssh-auth", id="nothing in the way"),
        pytest.param(
            OTHER,
            [{"name": "keys", "mountPath": "/root/.ssh/"}],
            None,
            "ssh-auth",
            id="the user mounts keys of their own, and sidecars may still mount ours",
        ),
        pytest.param(
            [],
            [{"name": "ssh-auth", "mountPath": "/root/.ssh", "readOnly": True}],
            "ssh-auth",
            "ssh-auth",
            id="the user mounts our volume, but differently",
        ),
        pytest.param(
            OWN,
            [{"name": "ssh-auth", "mountPath": "/mine"}],
            "ssh-auth-2",
            "ssh-auth-2",
            id="the user has a volume of our name for something else",
        ),
        pytest.param(
            [*OWN, {"name": "ssh-auth-2", "emptyDir": {}}],
            [],
            "ssh-auth-3",
            "ssh-auth-3",
            id="even our second name is taken",
        ),
        pytest.param(
            OWN,
            [{"name": "ssh-auth", "mountPath": "/root/.ssh"}],
            "ssh-auth",
            None,
            id="the user has replaced all of it",
        ),
    ],
)
def test_our_volume_does_not_clash_with_the_users(pod: Pod, given, mounted, expected, ours):
    spec = pod(job_of(pods({"volumes": given}, volumeMounts=mounted)))["spec"]
    assert mounts(spec).get("/root/.ssh") == expected
    assert len(volumes(spec)) == len(spec["volumes"])
    secrets = {
        v["name"] for v in spec["volumes"] if v.get("secret", {}).get("secretName") == "pi-ssh"
    }
    assert secrets == ({ours} if ours else set())
    paths = [each["mountPath"].rstrip("/") for each in first_container(spec)["volumeMounts"]]
    assert len(set(paths)) == len(paths)


@pytest.mark.parametrize(
    ("settings", "scheduler", "labels", "annotations"),
    [
        pytest.param(NONE, None, {}, {}, id="without a gang scheduler"),
        pytest.param(VOLCANO, "volcano", {}, {"scheduling.k8s.io/group-name": "pi"}, id="Volcano"),
        pytest.param(
            PLUGINS, "bunch", {"scheduling.x-k8s.io/pod-group": "pi"}, {}, id="scheduler-plugins"
        ),
    ],
)
def test_a_gang_scheduler_finds_the_group_of_a_pod(
    pod: Pod, settings, scheduler, labels, annotations
):
    plain, found = pod(job_of()), pod(job_of(), settings)
    assert found["spec"].get("schedulerName") == scheduler
    assert found["metadata"]["labels"] == plain["metadata"]["labels"] | labels
    assert found["metadata"].get("annotations", {}) == annotations


def test_the_gang_scheduler_replaces_the_one_of_the_template(pod: Pod):
    job = job_of(pods({"schedulerName": "mine"}))
    assert pod(job, VOLCANO)["spec"]["schedulerName"] == "volcano"
    assert pod(job)["spec"]["schedulerName"] == "mine"


NULLS = {
    "metadata": None,
    "spec": {
        "dnsConfig": None,
        "dnsPolicy": None,
        "hostNetwork": None,
        "volumes": None,
        "containers": [
            {
                "name": "mpi",
                "image": "example.com/mpi:1",
                "args": None,
                "command": None,
                "env": None,
                "resources": None,
                "volumeMounts": None,
            }
        ],
    },
}


@pytest.mark.parametrize(
    "role",
    [
        {"template": NULLS},
        {"template": NULLS | {"metadata": {"labels": None, "annotations": None}}},
    ],
)
def test_nulls_mean_not_given(pod: Pod, role):
    clean = job_of()
    specs = clean.spec.mpi_replica_specs
    assert specs.worker is not None
    # Not through decode_job, which leaves nulls out.
    specs = replace(
        specs,
        launcher=replace(specs.launcher, **role),
        worker=replace(specs.worker, **role),
    )
    job = replace(clean, spec=replace(clean.spec, mpi_replica_specs=specs))
    assert environment(pod(job)["spec"]) == environment(pod(clean)["spec"])
    assert volumes(pod(job)["spec"]) == volumes(pod(clean)["spec"])
    assert pod(job)["metadata"] == pod(clean)["metadata"]
