"""A job from a program, without a file."""

import json
import subprocess
import sys

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from mpi_operator.api.decode import decode_job, warnings
from mpi_operator.cli.command_errors import InvalidInput
from mpi_operator.cli.job_input import program_job
from mpi_operator.cli.job_input.program_job import Size, manifest_of, mpi_settings, name_of, size_of
from mpi_operator.cli.job_input.run_arguments import Shape
from mpi_operator.cli.main import mpijob
from mpi_operator.local.kubelet.container_env import expanded
from mpi_operator.mpi_variables import MPIS
from tests.support.mpijobs import mpijob as mpijob_manifest


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        pytest.param(Shape(ranks=4), Size(4, 0, 4), id="ranks share the launcher"),
        pytest.param(Shape(ranks=3, slots=4), Size(3, 0, 4), id="slots for more ranks"),
        pytest.param(Shape(ranks=4, workers=1), Size(4, 1, 4), id="ranks share one worker"),
        pytest.param(Shape(workers=3), Size(3, 3, 1), id="a rank for each worker"),
        pytest.param(Shape(workers=2, slots=2), Size(4, 2, 2), id="all slots"),
        pytest.param(Shape(ranks=5, workers=2), Size(5, 2, 3), id="slots for all ranks"),
        pytest.param(Shape(ranks=5, slots=2), Size(5, 3, 2), id="workers for all ranks"),
        pytest.param(Shape(ranks=3, workers=2, slots=2), Size(3, 2, 2), id="a free slot"),
    ],
)
def test_missing_numbers_follow_from_the_others(shape, size):
    assert size_of(shape) == size


def test_more_ranks_than_slots_are_refused():
    with pytest.raises(InvalidInput, match="-np 5 does not fit: 2 workers with 2 slots each have"):
        size_of(Shape(5, 2, 2))


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["hostname"], "hostname"),
        (["./a.out"], "a-out"),
        (["python", "train.py", "--lr", "1"], "train"),
        (["/usr/bin/python3.12", "-u", "src/My_Train.py"], "my-train"),
        (["python", "-m", "pkg.train"], "pkg-train"),
        (["python", "-c", "print(1)"], "python"),
        (["bash", "run.sh"], "run"),
        (["sh", "-c", "exit 1"], "sh"),
        (["./2d-heat"], "job-2d-heat"),
        (["./" + "x" * 99], "x" * 40),
        (["./__"], "job"),
    ],
)
def test_the_name_of_a_job_comes_from_its_program(words, name):
    assert name_of(words) == name


@given(st.lists(st.text(min_size=1), min_size=1, max_size=3))
def test_every_program_makes_a_valid_job(words):
    job = decode_job(manifest_of(words, Shape(ranks=2), "OpenMPI", None))
    assert job.spec.slots_per_worker == 2


@given(st.text(alphabet="$()AB x"))
def test_kubernetes_gives_a_program_the_arguments_that_were_typed(word):
    assert expanded(program_job.escaped(word), {"A": "wrong", "B": "wrong"}) == word


@pytest.mark.parametrize("implementation", MPIS)
def test_the_command_line_is_that_of_the_implementation(implementation):
    job = decode_job(manifest_of(["./a", "-n"], Shape(ranks=4), implementation, None))
    [launcher] = job.spec.launcher.template["spec"]["containers"]
    *mpirun, program, argument = launcher["command"]
    assert mpirun[0] == "mpirun"
    assert mpirun[-2:] == ["-n", "4"]
    assert (program, argument) == ("./a", "-n")
    assert ("--allow-run-as-root" in mpirun) == (implementation == "OpenMPI")
    assert job.spec.mpi_implementation == implementation


def test_the_settings_of_the_users_mpi_are_kept():
    mine = {"I_MPI_DEBUG": "5", "OMPI_MCA_btl": "tcp,self", "OMPI_MCA_plm_rsh_agent": "rsh"}
    assert mpi_settings("OpenMPI", mine) == ["OMPI_MCA_btl=tcp,self"]
    assert mpi_settings("Intel", mine) == ["I_MPI_DEBUG=5"]


def test_the_settings_of_a_surrounding_rank_are_not():
    assert mpi_settings("OpenMPI", {"OMPI_MCA_btl": "self", "PMIX_RANK": "0"}) == []


# --- the command line


def run(*words):
    return CliRunner().invoke(mpijob, ["run", *words])


def dry_run(*words):
    done = run("--dry-run", *words)
    assert done.exit_code == 0, done.output
    return yaml.safe_load(done.stdout)


def containers(job, role):
    return job["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]["containers"]


@pytest.mark.parametrize("separator", [[], ["--"]], ids=["plain", "--"])
def test_everything_after_a_program_belongs_to_it(separator):
    words = ["prog", "--env", "x", "-o", "json", "--", "-np", "3"]
    job = dry_run("-np", "2", "--mpi", "mpich", *separator, *words)
    [launcher] = containers(job, "Launcher")
    assert launcher["command"] == ["mpirun", "-n", "2", *words]


def test_a_dry_run_prints_a_job_for_a_cluster():
    options = ["--image", "example.com/a:1", "--gpus", "2", "--env", "A=1", "--mpi", "intel"]
    job = dry_run("--workers", "2", "--slots", "3", *options, "--set", "name=other", "prog")
    assert warnings(job) == []
    decoded = decode_job(job)
    assert (decoded.metadata.name, decoded.spec.worker_count) == ("other", 2)
    assert (decoded.spec.slots_per_worker, decoded.spec.mpi_implementation) == (3, "Intel")
    assert "namespace" not in job["metadata"]
    for role in ("Launcher", "Worker"):
        [container] = containers(job, role)
        assert container["image"] == "example.com/a:1"
        assert container["env"] == [{"name": "A", "value": "1"}]
    assert containers(job, "Worker")[0]["resources"] == {"limits": {"nvidia.com/gpu": 2}}
    assert "resources" not in containers(job, "Launcher")[0]


def test_without_workers_all_ranks_run_in_the_launcher():
    job = dry_run("-np", "4", "--gpus", "2", "--env", "A=1", "prog")
    assert warnings(job) == []
    decoded = decode_job(job)
    assert (decoded.spec.worker_count, decoded.spec.slots_per_worker) == (0, 4)
    assert decoded.spec.run_launcher_as_worker
    [launcher] = containers(job, "Launcher")
    assert launcher["resources"] == {"limits": {"nvidia.com/gpu": 2}}
    assert launcher["env"] == [{"name": "A", "value": "1"}]
    assert "Worker" not in job["spec"]["mpiReplicaSpecs"]


@pytest.mark.parametrize("shape", [["-np", "2"], ["--workers", "2"]])
def test_a_program_that_fails_is_not_started_again(shape):
    job = decode_job(dry_run(*shape, "prog"))
    assert job.spec.launcher.restart_policy == "Never"
    assert job.spec.run_policy.backoff_limit == 0


def test_a_dry_run_can_print_json():
    done = run("-np", "2", "--dry-run", "-o", "json", "prog")
    assert json.loads(done.stdout)["metadata"]["name"] == "prog"


def test_a_dry_run_of_a_file_keeps_every_namespace(tmp_path):
    config = {"apiVersion": "v1", "kind": "ConfigMap"}
    written = [
        {**config, "metadata": {"name": "a", "namespace": "team-b"}},
        {**config, "metadata": {"name": "b"}},
        mpijob_manifest("pi", "team-a"),
        mpijob_manifest("tau", "team-b"),
    ]
    file = tmp_path / "jobs.yaml"
    file.write_text(yaml.safe_dump_all(written))
    done = run("--dry-run", str(file), "--configmap", f"c={file}")
    printed = {
        each["metadata"]["name"]: each["metadata"].get("namespace")
        for each in yaml.safe_load_all(done.stdout)
    }
    assert printed == {"a": "team-b", "b": None, "c": "team-a", "pi": "team-a", "tau": "team-b"}


def test_a_dry_run_of_a_file_prints_what_would_run(tmp_path):
    file = tmp_path / "job.yaml"
    job = manifest_of(["prog"], Shape(workers=2), "MPICH", None)
    job["metadata"]["namespace"] = "team-a"
    file.write_text(yaml.safe_dump(job))
    printed = dry_run(str(file), "--set", "workers=7")
    assert printed["metadata"]["namespace"] == "team-a"
    assert printed["spec"]["mpiReplicaSpecs"]["Worker"].pop("replicas") == 7
    del job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"]
    assert printed == job


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["prog", "-np", "2"], "-np and --workers must come before the program."),
        (["-n", "2", "prog"], "No such option '-n': -np sets the number of ranks."),
        (["-np", "0", "prog"], "0 is not in the range x>=1"),
        (["-np", "2"], "Missing argument"),
        (["--slots", "2", "job.yaml"], "--slots needs -np or --workers, and a program; for a file"),
        (["--mpi", "mpich", "job.yaml"], "--mpi needs -np or --workers"),
        (["python", "train.py"], "expected one file, got python train.py"),
        (["-np", "2", "-o", "yaml", "prog"], "-o yaml needs --dry-run"),
        (["-np", "2", "--set", "workers=2", "--dry-run", "prog"], "mpijob run --workers 2 …"),
        (["-np", "2", "--configmap", "a=b", "prog"], "--volume need a file that refers to them"),
        (["-np", "2", "-o", "text", "--dry-run", "prog"], "--dry-run prints YAML or JSON"),
    ],
)
def test_what_cannot_be_meant_is_refused(words, message):
    done = run(*words)
    assert done.exit_code == 2
    assert message in done.output


@pytest.mark.parametrize("output", [["-o", "json"], ["-ojson"], ["--output=json"]], ids=" ".join)
def test_errors_of_options_are_json_on_demand(output):
    done = run("-np", "x", *output, "prog")
    assert done.exit_code == 2
    error = json.loads(done.stdout)
    assert (error["type"], error["exitCode"]) == ("error", 2)
    assert "'x' is not a valid integer range" in error["message"]


def test_json_has_the_command_that_helps(tmp_path):
    (tmp_path / "job.yaml").touch()
    done = run("-np", "2", "-o", "json", str(tmp_path / "job.yaml"))
    assert done.exit_code == 2
    assert json.loads(done.stdout)["advice"].startswith(f"mpijob run {tmp_path}/job.yaml ")


@pytest.mark.parametrize(
    ("word", "mode", "command"),
    [
        ("./hello", 0o755, "mpijob run -np 4 ./hello"),
        ("train.py", 0o644, "mpijob run -np 4 python train.py"),
        ("train.py", 0o755, "mpijob run -np 4 train.py"),
        ("hostname", None, "mpijob run -np 4 hostname"),
    ],
)
def test_a_program_without_np_gets_the_command_that_runs_it(
    tmp_path, monkeypatch, word, mode, command
):
    monkeypatch.chdir(tmp_path)
    if mode:
        (tmp_path / word).write_text("")
        (tmp_path / word).chmod(mode)
    done = run(word)
    assert done.exit_code == 2
    assert f"mpijob: {word} is a program" in done.output
    assert command in done.output


def test_a_file_without_a_suffix_is_a_file(tmp_path):
    file = tmp_path / "job"
    file.write_text(yaml.safe_dump(mpijob_manifest("pi")))
    assert dry_run(str(file))["metadata"]["name"] == "pi"


@pytest.mark.parametrize(
    ("spec", "roles"),
    [
        pytest.param({}, {"Worker"}, id="workers"),
        pytest.param({"runLauncherAsWorker": True}, {"Launcher", "Worker"}, id="both"),
    ],
)
@pytest.mark.parametrize("count", [0, 3])
def test_the_gpus_of_a_file_can_be_set(tmp_path, spec, roles, count):
    file = tmp_path / "job.yaml"
    job = mpijob_manifest("pi", **spec)
    amounts = {"nvidia.com/gpu": 8, "cpu": 1}
    for role in roles:
        [container] = containers(job, role)
        container["resources"] = {"limits": amounts, "requests": amounts}
    file.write_text(yaml.safe_dump(job))
    printed = dry_run(str(file), "--gpus", str(count))
    gpus = {"nvidia.com/gpu": count} if count else {}
    for role in roles:
        [container] = containers(printed, role)
        assert container["resources"] == {"limits": {"cpu": 1, **gpus}, "requests": {"cpu": 1}}
    for role in {"Launcher", "Worker"} - roles:
        assert "resources" not in containers(printed, role)[0]


def test_a_file_is_not_a_program(tmp_path):
    file = tmp_path / "job.yaml"
    file.write_text("")
    done = run("-np", "2", str(file))
    assert done.exit_code == 2
    assert f"mpijob: {file} is not a program" in done.output
    assert f"mpijob run {file} --set workers=2" in done.output


def test_an_empty_word_is_not_a_program():
    done = run("-np", "2", "")
    assert done.exit_code == 2
    assert "mpijob: the program is empty" in done.output


def test_a_program_loads_no_parser_of_yaml():
    program = (
        "import sys; from mpi_operator.cli.running import runner;"
        "from mpi_operator.cli.job_input import run_arguments as run, run_input;"
        "arguments = run.RunArguments(['prog'], run.Shape(2), is_dry_run=True);"
        "run_input.load(arguments);"
        "print([name for name in ('yaml',) if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr
