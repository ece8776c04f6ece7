"""A job from a file, and the changes of the command line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from mpi_operator.cli.command_errors import InvalidInput
from mpi_operator.cli.job_input import job_file
from mpi_operator.cli.job_input.environment import with_environment
from mpi_operator.cli.job_input.workload import Changes
from tests.support.mpijobs import mpijob, template

EXAMPLE = Path(__file__).parents[3] / "examples" / "pi" / "pi.yaml"


def text(*documents):
    return yaml.safe_dump_all(documents)


def test_the_one_job_of_a_file(tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text(text({"kind": "Service"}, mpijob("pi"), None))
    [loaded] = job_file.load(path).jobs
    assert loaded.job.metadata.name == "pi"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param("a: [", "cannot parse job.yaml:1:5: ", id="no YAML"),
        pytest.param("", "no MPIJob in job.yaml: it is empty", id="empty"),
        pytest.param(
            "kind: MPIjob",
            "in job.yaml: found kind MPIjob; did you mean MPIJob?",
            id="a misspelt kind",
        ),
        pytest.param(
            text({"kind": "Service"}, {"kind": "Pod"}, {"kind": "Pod"}),
            "in job.yaml: found kind Service, Pod",
            id="other kinds",
        ),
        pytest.param(
            "kind: List", "invalid List in job.yaml: items must be a list", id="a list of nothing"
        ),
        pytest.param(
            text(mpijob("a"), {"kind": "List", "items": 5}),
            "invalid List in job.yaml: items must be a list of objects",
            id="a list of something else",
        ),
        pytest.param("kind: List\nitems: []", "job.yaml: it is empty", id="an empty list"),
        pytest.param("- 1", "no MPIJob in job.yaml: ", id="something else"),
        pytest.param(
            text(mpijob("a"), mpijob("a")), "MPIJob a is in job.yaml twice", id="the same name"
        ),
    ],
)
def test_a_file_without_a_valid_job(content, message):
    with pytest.raises(InvalidInput) as raised:
        job_file.parse(content, "job.yaml")
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("content", "places"),
    [
        pytest.param(
            text(mpijob("pi")) + "metadata: {name: b, name: c}\n",
            ["metadata", "metadata.name"],
            id="in a job",
        ),
        pytest.param(
            text(mpijob("pi")) + "---\nkind: Service\nspec: {a: 1, a: 1}\n",
            ["spec.a"],
            id="in an object without effect, with the same value",
        ),
        pytest.param(
            json.dumps(mpijob("pi")).replace('"pi"', '"pi", "name": "b"', 1),
            ["metadata.name"],
            id="in JSON",
        ),
    ],
)
def test_a_key_that_is_written_twice_is_an_error(content, places):
    with pytest.raises(InvalidInput) as raised:
        job_file.parse(content, "job.yaml")
    first, *lines = raised.value.message.splitlines()
    assert first == "keys written twice in job.yaml:"
    assert [each.split(": ")[1] for each in lines] == places
    assert lines[-1].startswith(f"  line {len(content.splitlines())}: ")


@pytest.mark.parametrize("version", ["v2beta1", "v1", "v1alpha1"])
@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        pytest.param(None, "metadata.name: Required value", id="empty"),
        pytest.param({}, "metadata.name: Required value", id="an empty object"),
        pytest.param("pi", "metadata: ", id="a text"),
        pytest.param(["pi"], "metadata: ", id="a list"),
        pytest.param([], "metadata: ", id="an empty list"),
        pytest.param({"name": 5}, "metadata.name: ", id="a name of the wrong type"),
        pytest.param({"name": "pi", "annotations": ["x"]}, "metadata.annotations", id="inside"),
    ],
)
def test_wrong_metadata_is_an_error(tmp_path, version, metadata, message):
    path = tmp_path / "job.yaml"
    job = v1alpha1() if version == "v1alpha1" else mpijob("pi")
    path.write_text(text(job | {"apiVersion": f"kubeflow.org/{version}", "metadata": metadata}))
    with pytest.raises(InvalidInput) as raised:
        job_file.load(path, Changes(variables=["A=1"]))
    assert message in str(raised.value)


def test_wrong_variables_are_an_error(tmp_path):
    path = tmp_path / "job.yaml"
    job = mpijob("pi")
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["env"] = "A"
    path.write_text(text(job))
    with pytest.raises(InvalidInput, match="env: Invalid value"):
        job_file.load(path, Changes(variables=["A=1"]))


def test_all_jobs_of_a_file_with_the_same_settings(tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text(text(mpijob("a"), mpijob("b")))
    jobs = [each.job for each in job_file.load(path, Changes(["workers=3"])).jobs]
    assert [(job.metadata.name, job.spec.worker_count) for job in jobs] == [("a", 3), ("b", 3)]
    with pytest.raises(InvalidInput, match=r"--set name needs a file with one MPIJob, .* has 2"):
        job_file.load(path, Changes(["name=c"]))


def test_a_job_with_wrong_metadata_beside_another(tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text(text(mpijob("a"), mpijob("b") | {"metadata": ["b"]}))
    with pytest.raises(InvalidInput, match="invalid MPIJob"):
        job_file.load(path)


def test_a_missing_file(tmp_path):
    with pytest.raises(InvalidInput, match=r"cannot read .*no\.yaml: No such file or directory"):
        job_file.load(tmp_path / "no.yaml")


def test_variables_reach_both_roles_and_replace_others_of_their_name():
    job = with_environment(mpijob("pi"), ["A=1", "B=x=y"])
    job = with_environment(job, ["A=2"])
    for role in ("Launcher", "Worker"):
        [container] = job["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]["containers"]
        assert container["env"] == [{"name": "B", "value": "x=y"}, {"name": "A", "value": "2"}]


def test_a_variable_without_a_value():
    with pytest.raises(InvalidInput, match="invalid --env A: expected NAME=VALUE"):
        with_environment(mpijob("pi"), ["A"])


# --- older API versions


def v1(**spec):
    return mpijob("pi", **spec) | {"apiVersion": "kubeflow.org/v1"}


def v1alpha1(**spec):
    return {
        "apiVersion": "kubeflow.org/v1alpha1",
        "kind": "MPIJob",
        "metadata": {"name": "pi"},
        "spec": {"template": template(), **spec},
    }


def load(path, manifest, *settings, **units):
    path.write_text(text(manifest))
    [loaded] = job_file.load(path, Changes(settings, ["A=1"], units)).jobs
    return loaded


@pytest.fixture
def path(tmp_path):
    return tmp_path / "job.yaml"


def test_an_old_job_becomes_v2beta1(path):
    loaded = load(path, v1(cleanPodPolicy="Running"))
    assert loaded.manifest["apiVersion"] == "kubeflow.org/v2beta1"
    assert loaded.job.spec.run_policy.clean_pod_policy == "Running"
    assert loaded.job.metadata.annotations["mpi-operator.kubeflow.org/written-in"] == "v1"


@pytest.mark.parametrize(
    ("units", "workers"),
    [
        pytest.param({}, 8, id="one per node, as the operator does by default"),
        pytest.param({"gpus_per_node": 4}, 2, id="four per node"),
    ],
)
def test_totals_are_split_into_workers(path, units, workers):
    assert load(path, v1alpha1(gpus=8), **units).job.spec.worker_count == workers


def test_short_settings_mean_the_same_in_every_version(path):
    job = load(path, v1alpha1(replicas=1), "workers=3", "slots=2", "name=other").job
    assert (job.metadata.name, job.spec.worker_count, job.spec.slots_per_worker) == ("other", 3, 2)


def test_paths_are_those_of_the_file(path):
    assert load(path, v1alpha1(), "spec.replicas=3").job.spec.worker_count == 3


def test_variables_reach_both_roles_of_one_template(path):
    spec = load(path, v1alpha1(replicas=1)).job.spec
    for role in (spec.launcher, spec.worker):
        assert role.template["spec"]["containers"][0]["env"] == [{"name": "A", "value": "1"}]


def test_variables_reach_the_main_container(path):
    job = v1(mainContainer="mpi")
    containers = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    containers.insert(0, {"name": "proxy", "image": "example.com/proxy:1"})
    [proxy, mpi] = load(path, job).job.spec.launcher.template["spec"]["containers"]
    assert "env" not in proxy
    assert mpi["env"] == [{"name": "A", "value": "1"}]


@pytest.mark.parametrize(
    ("manifest", "settings", "message"),
    [
        pytest.param(
            v1() | {"apiVersion": "kubeflow.org/v9"},
            [],
            "  apiVersion: 'kubeflow.org/v9' is not an API version of MPIJobs; use one of kubeflow",
            id="an unknown version",
        ),
        pytest.param(
            v1alpha1(gpus=12),
            [],
            "  spec.gpus: Invalid value: 12: must be less than 8 or a multiple of it",
            id="a total that cannot be split",
        ),
        pytest.param(
            v1alpha1(replicas="two"),
            [],
            '  spec.replicas: Invalid value: "two": must be an integer',
            id="a value of the wrong type",
        ),
        pytest.param(
            v1alpha1(replicas=1),
            ["backoffLimit=-1"],
            "  spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0",
            id="a setting",
        ),
    ],
)
def test_errors_name_the_fields_of_the_file(path, manifest, settings, message):
    with pytest.raises(InvalidInput) as raised:
        load(path, manifest, *settings, gpus_per_node=8)
    assert message in str(raised.value)


def test_warnings_name_the_fields_of_the_file(path):
    loaded = load(path, v1alpha1(replicas=1, slotsPerWorkr=2))
    assert [*map(str, loaded.warnings)] == [
        "spec.slotsPerWorkr: unknown field, ignored; did you mean slotsPerWorker?"
    ]


@pytest.mark.parametrize(
    ("settings", "warned"),
    [
        pytest.param(["workers=4"], True, id="more workers"),
        pytest.param(["slots=3"], True, id="more slots"),
        pytest.param(["workers=1", "slots=2"], False, id="as many slots"),
        pytest.param(["backoffLimit=0"], False, id="another setting"),
        pytest.param([], False, id="none"),
    ],
)
def test_a_size_that_does_not_change_the_number_of_ranks_is_a_warning(path, settings, warned):
    job = mpijob("pi")
    launcher = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    launcher["command"] = ["mpirun", "-x", "A", "-n", "2", "python", "pi.py", "-n", "9"]
    assert bool(load(path, job, *settings).warnings) is warned


def test_the_warning_says_what_to_do(path):
    job = mpijob("pi")
    launcher = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    launcher["command"] = ["sh", "-c", "cd /data && exec mpirun -np 2 ./pi"]
    assert [*map(str, load(path, job, "workers=4").warnings)] == [
        "spec.mpiReplicaSpecs[Launcher]: its command starts 2 ranks, but --set workers=4 makes "
        "4 slots. Without -n, mpirun starts one rank per slot"
    ]


def test_the_example_has_a_rank_per_slot(path):
    [loaded] = job_file.load(EXAMPLE, Changes(["workers=4"])).jobs
    assert loaded.warnings == []


def test_a_job_of_v2beta1_loads_no_conversion():
    program = (
        "import sys; from pathlib import Path; from mpi_operator.cli.job_input import job_file;"
        f"job_file.load(Path({str(EXAMPLE)!r}));"
        "print([name for name in sys.modules if 'conversion' in name or 'webhook' in name])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr
