"""What holds for every job, whatever its templates are like."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mpi_operator.api import MPIJob, decode_job, manifest
from mpi_operator.build.config_map import config_map
from mpi_operator.build.launcher_job import launcher_job, resumed
from mpi_operator.build.pod_group import needs_update, pod_group
from mpi_operator.build.service import service, service_differs
from mpi_operator.build.worker_pod import worker_pods
from mpi_operator.kube.resources import Manifest
from tests.support.mpijobs import mpijob
from tests.unit.build.jobs import DOMAIN, NONE, PLUGINS, VOLCANO, first_container

OUR_NAMES = [
    "K_MPI_JOB_ROLE",
    "NVIDIA_VISIBLE_DEVICES",
    "OMPI_MCA_plm_rsh_args",
    "PRTE_MCA_plm_ssh_agent",
    "HYDRA_HOST_FILE",
    "I_MPI_PERHOST",
]
OUR_VOLUMES = ["ssh-auth", "mpi-job-config", "data", "ssh-auth-2"]
OUR_PATHS = ["/root/.ssh/", "/etc/mpi", "/data", "/home/mpiuser/.ssh"]


def listed(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Manifest]]:
    """Items that differ in their first field."""
    first = next(iter(fields))
    return st.lists(st.fixed_dictionaries(fields), max_size=4, unique_by=lambda item: item[first])


def optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Manifest]:
    return st.fixed_dictionaries({}, optional=fields)


MARKS = st.dictionaries(st.sampled_from(["a", "training.kubeflow.org/job-name"]), st.just("x"))
CONTAINER = st.builds(
    lambda more: {"name": "mpi", "image": "example.com/mpi:1", **more},
    optional(
        command=st.just(["run"]),
        args=st.just(["it"]),
        env=listed(name=st.sampled_from([*OUR_NAMES, "MINE"]), value=st.just("1")),
        volumeMounts=listed(mountPath=st.sampled_from(OUR_PATHS), name=st.just("data")),
        resources=optional(
            requests=st.dictionaries(
                st.sampled_from(["cpu", "memory"]), st.sampled_from(["1", "2Gi"])
            )
        ),
    ),
)
POD = st.builds(
    lambda first, others, more: {"containers": [first, *others], **more},
    CONTAINER,
    st.sampled_from([[], [{"name": "sidecar", "image": "example.com/sidecar:1"}]]),
    optional(
        hostNetwork=st.booleans(),
        dnsPolicy=st.sampled_from(["ClusterFirst", "Default"]),
        dnsConfig=optional(searches=st.just(["pi.default.svc.cluster.local", "example.org"])),
        volumes=listed(name=st.sampled_from(OUR_VOLUMES), emptyDir=st.just({})),
        nodeSelector=st.just({"gpu": "a100"}),
        tolerations=st.just([{"operator": "Exists"}]),
        priorityClassName=st.sampled_from(["low", "high"]),
    ),
)
ROLE = st.builds(
    lambda pod, metadata: {"template": {"spec": pod, "metadata": metadata}},
    POD,
    optional(labels=MARKS, annotations=MARKS),
)
JOBS = st.builds(
    lambda launcher, worker, replicas, spec: decode_job(
        mpijob(launcher=launcher, worker=worker | {"replicas": replicas}, **spec)
    ),
    ROLE,
    ROLE,
    st.integers(1, 3),
    optional(
        mpiImplementation=st.sampled_from(["OpenMPI", "Intel", "MPICH"]),
        runLauncherAsWorker=st.booleans(),
        sshAuthMountPath=st.sampled_from(["/root/.ssh", "/home/mpiuser/.ssh"]),
        slotsPerWorker=st.integers(0, 8),
    ),
)
SETTINGS = st.sampled_from([NONE, DOMAIN, VOLCANO, PLUGINS])
GANGS = st.sampled_from([VOLCANO, PLUGINS])


def pod_specs(job: MPIJob, settings) -> list[Manifest]:
    """What runs for a job."""
    workers = worker_pods(job, range(job.spec.worker_count), settings)
    launcher = launcher_job(job, settings, suspend=False)["spec"]["template"]
    return [pod["spec"] for pod in (launcher, *workers)]


@given(JOBS, SETTINGS)
def test_a_template_is_never_changed(job, settings):
    before = manifest(job)
    pod_specs(job, settings)
    assert manifest(job) == before


@given(JOBS, SETTINGS)
def test_building_twice_gives_the_same_manifests(job, settings):
    assert pod_specs(job, settings) == pod_specs(job, settings)
    assert config_map(job, [0], settings) == config_map(job, [0], settings)


@given(JOBS, SETTINGS)
def test_names_and_paths_are_unique(job, settings):
    for spec in pod_specs(job, settings):
        container = first_container(spec)
        for names in (
            [variable["name"] for variable in container["env"]],
            [mount["mountPath"].rstrip("/") for mount in container["volumeMounts"]],
            [volume["name"] for volume in spec["volumes"]],
            spec.get("dnsConfig", {}).get("searches", []),
        ):
            assert len(set(names)) == len(names)


@given(JOBS, SETTINGS)
def test_the_users_settings_are_kept(job, settings):
    roles = [job.spec.launcher, *[job.spec.worker] * job.spec.worker_count]
    for role, spec in zip(roles, pod_specs(job, settings), strict=True):
        given_spec = role.template["spec"]
        asked, found = first_container(given_spec), first_container(spec)
        for field in ("env", "volumeMounts"):
            user = asked.get(field, [])
            assert found[field][: len(user)] == user
        user = given_spec.get("volumes", [])
        assert spec["volumes"][: len(user)] == user
        assert found["image"] == asked["image"]
        assert spec["containers"][1:] == given_spec["containers"][1:]


@given(JOBS, JOBS, SETTINGS)
def test_resuming_twice_is_resuming_once(before, after, settings):
    stored = launcher_job(before, settings, suspend=True)
    untouched = copy.deepcopy(stored)
    once = resumed(stored, after, settings)
    assert resumed(once, after, settings) == once
    assert stored == untouched


@given(JOBS, SETTINGS)
def test_resuming_an_unchanged_job_only_resumes_it(job, settings):
    stored = launcher_job(job, settings, suspend=True)
    expected = copy.deepcopy(stored)
    expected["spec"]["suspend"] = False
    assert resumed(stored, job, settings) == expected


@given(JOBS, GANGS, st.booleans())
def test_a_new_manifest_needs_no_update(job, settings, with_launcher):
    group = pod_group(job, settings, {"low": 1, "high": 2}, with_launcher=with_launcher)
    assert not needs_update(group["spec"], group)
    assert not service_differs(service(job)["spec"], job)
