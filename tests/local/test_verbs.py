"""The verbs for running and finished jobs, typed in another shell."""

import json
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from mpi_operator.kube.resources import Manifest
from tests.local.environments import environment
from tests.local.run_processes import marked
from tests.local.shell import Shell, job
from tests.support.waiting import block_until

ABOUT_A_JOB = ["get", "describe", "logs", "scale", "suspend", "resume", "delete"]
MODULES = ["run", "get", "describe", "logs", "scale", "suspend", "delete", "image"]
HEAVY = (
    "aiohttp",
    "cryptography",
    "prometheus_client",
    "rich",
    "yaml",
    "mpi_operator.controller",
    "mpi_operator.embedded",
)
LAUNCHER = ["sh", "-c", "echo ready; exec sleep 600"]


@contextmanager
def new_shell(home: Path) -> Iterator[Shell]:
    """A shell with its own state directory, in which no run is left."""
    made = Shell(home, environment("OpenMPI"))
    yield made
    block_until(lambda: marked(made.runs) == [])
    assert not made.runs.exists() or [entry.name for entry in made.runs.iterdir()] == [".lock"]


@contextmanager
def started(shell: Shell, directory: Path) -> Iterator["subprocess.Popen[str]"]:
    """An `mpijob run` whose launcher runs, until the block ends."""
    process = shell.start("run", job(directory, LAUNCHER))
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)


@pytest.fixture
def shell(tmp_path):
    with new_shell(tmp_path / "state") as made:
        yield made


@pytest.fixture
def run(shell, tmp_path):
    """The process of a job called pi."""
    with started(shell, tmp_path) as process:
        yield process


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """A shell with a running job that no test changes."""
    place = tmp_path_factory.mktemp("reading")
    with new_shell(place / "state") as made, started(made, place):
        block_until(lambda: running_workers(made) == 2)
        yield made


def known(shell: Shell) -> Manifest:
    """The job pi."""
    code, out, err = shell.run("get", "pi", "-o", "json")
    assert code == 0, err
    found: Manifest = json.loads(out)
    return found


def running_workers(shell: Shell) -> int:
    statuses = known(shell).get("status", {}).get("replicaStatuses", {})
    return int(statuses.get("Worker", {}).get("active", 0))


def is_true(shell: Shell, condition: str) -> bool:
    conditions = known(shell)["status"]["conditions"]
    return any(each["type"] == condition and each["status"] == "True" for each in conditions)


# --- reading


@pytest.mark.parametrize("words", [("list",), ("get", "pi")], ids=" ".join)
def test_a_job_is_seen_from_another_shell(reader, words):
    code, out, err = reader.run(*words)
    assert (code, err) == (0, "")
    assert re.fullmatch(
        r"NAME +RUN +STATE +WORKERS +AGE\npi +\d+-\w+ +Running +2/2 +\d+[sm]\n", out
    ), out


def test_programs_get_whole_objects(reader):
    _, listed, _ = reader.run("list", "-o", "yaml")
    assert yaml.safe_load(listed)["items"][0]["metadata"]["name"] == "pi"
    assert known(reader)["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 2


def test_a_description_has_conditions_pods_and_events(reader):
    code, out, _ = reader.run("describe", "pi")
    assert code == 0
    assert out.startswith("pi: MPIJob default/pi is running.\n")
    for words in ("conditions", "Running  yes", "pods", "pi-worker-1 ", "events", "MPIJobCreated"):
        assert words in out


def test_the_log_of_launcher_and_worker(reader):
    assert reader.run("logs", "pi") == (0, "ready\n", "")
    assert reader.run("logs", "pi", "--worker", "1") == (0, "", "")


def test_the_log_of_an_unknown_worker_is_an_error(reader):
    code, _, err = reader.run("logs", "pi", "--worker", "2")
    assert code == 1
    assert re.fullmatch(r"mpijob: no worker 2 in pi \(.*\): its workers are 0 to 1\n", err)


@pytest.mark.parametrize("verb", ABOUT_A_JOB)
def test_an_unknown_name_is_an_error_with_the_known_ones(reader, verb):
    options = ("--workers", "1") if verb == "scale" else ()
    code, out, err = reader.run(verb, "po", *options)
    assert (code, out) == (1, "")
    assert err.startswith("mpijob: job po not found: ")
    assert " pi" in err


def test_an_invalid_size_is_rejected(reader):
    code, _, err = reader.run("scale", "pi", "--workers", "0")
    assert code == 1
    assert "[Worker].replicas: Invalid value" in err


def test_an_empty_list_is_no_error(shell):
    assert shell.run("list") == (0, "", "No jobs found on this machine\n")
    code, _, err = shell.run("get", "pi")
    assert (code, err) == (1, "mpijob: job pi not found: you have no jobs on this machine\n")


# --- changing


def test_a_job_is_scaled(shell, run):
    scaled = shell.run("scale", "pi", "--workers", "3")
    assert scaled == (0, "pi scaled from 2 to 3 workers\n", "")
    block_until(lambda: running_workers(shell) == 3, 60)


def test_scaling_to_the_size_that_a_job_has_writes_nothing(reader):
    before = known(reader)["metadata"]["resourceVersion"]
    assert reader.run("scale", "pi", "--workers", "2") == (0, "pi already has 2 workers\n", "")
    assert known(reader)["metadata"]["resourceVersion"] == before


def test_a_job_is_suspended_and_resumed(shell, run):
    assert shell.run("suspend", "pi")[:2] == (0, "pi suspended\n")
    assert shell.run("suspend", "pi")[:2] == (0, "pi is already suspended\n")
    block_until(lambda: is_true(shell, "Suspended"), 60)
    following = shell.start("logs", "pi", "--follow")
    assert shell.run("resume", "pi")[:2] == (0, "pi resumed\n")
    assert shell.run("resume", "pi")[:2] == (0, "pi is not suspended\n")
    assert following.stdout.readline() == "ready\n"
    following.terminate()
    following.communicate(timeout=60)


def test_a_deleted_job_ends_its_run_and_followed_logs(shell, run):
    following = shell.start("logs", "pi", "-f")
    assert following.stdout.readline() == "ready\n"
    assert shell.run("delete", "pi") == (0, "pi deleted\n", "")
    _, err = run.communicate(timeout=60)
    assert run.returncode == 1
    assert re.search(r"^pi was deleted \(", err.splitlines()[-1])
    assert following.communicate(timeout=60) == ("", "")
    assert following.returncode == 0


def test_the_run_selects_one_of_two_jobs_with_one_name(shell, run, tmp_path):
    with started(shell, tmp_path) as other:
        code, _, err = shell.run("delete", "pi")
        assert code == 1
        ids = re.findall(r"--run (\d+-\w+)", err)
        assert {each.split("-")[0] for each in ids} == {str(run.pid), str(other.pid)}
        [mine] = [each for each in ids if each.startswith(f"{other.pid}-")]
        shell.run("delete", "pi", "--run", mine)
        other.wait(60)
        assert run.poll() is None
        assert len(json.loads(shell.run("list", "-o", "json")[1])["items"]) == 1


def test_a_killed_run_is_lost_and_has_its_log(shell, run):
    [directory] = [entry for entry in shell.runs.iterdir() if entry.is_dir()]
    block_until(lambda: "pi-launcher" in (directory / "record.json").read_text())
    run.kill()
    run.wait(60)
    assert states(shell) == ["Lost"]
    assert shell.run("describe", "pi")[1].startswith("pi was lost: its `mpijob run` was killed")
    assert shell.run("logs", "pi") == (0, "ready\n", "")


# --- finished jobs


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A shell with two finished jobs called pi: the first succeeded, the second failed."""
    place = tmp_path_factory.mktemp("finished")
    with new_shell(place / "state") as made:
        for script in ("echo well", "echo badly; exit 3"):
            made.run("run", job(place, ["sh", "-c", script]))
        yield made


def states(shell: Shell) -> list[str]:
    """The states of all jobs, in the order of `mpijob list`."""
    _, out, _ = shell.run("list", "-o", "json")
    items = json.loads(out)["items"]
    return [each["metadata"]["annotations"]["mpi-operator.kubeflow.org/state"] for each in items]


def test_jobs_that_have_ended_are_listed_the_last_one_first(finished):
    assert states(finished) == ["Failed", "Succeeded"]


def test_the_name_of_a_job_means_the_one_that_ended_last(finished):
    assert finished.run("logs", "pi") == (0, "badly\n", "")
    assert finished.run("logs", "pi", "--follow") == (0, "badly\n", "")
    assert known(finished)["status"]["conditions"][-1]["type"] == "Failed"


def test_an_older_job_is_selected_by_its_run(finished):
    run = re.findall(r"(\d+-\w+) +Succeeded", finished.run("list")[1])[0]
    assert finished.run("logs", "pi", "--run", run) == (0, "well\n", "")


def test_deleted_workers_are_still_known(finished):
    assert finished.run("logs", "pi", "--worker", "1") == (0, "", "")
    assert "pi-worker-1" in finished.run("describe", "pi")[1]


def test_a_description_has_the_progress_that_the_program_reported(tmp_path):
    with new_shell(tmp_path / "state") as made:
        report = "progress: step=3 total=4 loss=0.5"
        made.run("run", job(tmp_path, ["sh", "-c", f"echo {report}; echo other"]))
        out = made.run("describe", "pi")[1]
    assert re.search(r"^ +progress +\[#{15}-{5}\] 3/4  loss 0\.5$", out, re.M), out


def described_progress(tmp_path: Path, script: str) -> str:
    """What `mpijob describe` says about the progress of a program."""
    with new_shell(tmp_path / "state") as made:
        made.run("run", job(tmp_path, ["sh", "-c", script]))
        out = made.run("describe", "pi")[1]
    [progress] = re.findall(r"^ +progress +(.*)$", out, re.M)
    return str(progress)


def test_a_description_has_the_time_that_is_left_at_the_pace_of_the_program(tmp_path):
    script = "echo progress: step=3 total=8; sleep 1; echo progress: step=4 total=8"
    progress = described_progress(tmp_path, script)
    assert re.fullmatch(r"\[#{10}-{10}\] 4/8  [1-9]s left", progress), progress


def test_the_progress_of_a_benchmark_is_described_however_much_was_printed_since_its_header(
    tmp_path,
):
    step = r"50\timages/sec: 154.8 +/- 0.6 (jitter = 4.0)\t8.397\n"
    script = f"echo 'Num batches: 100'; seq 20000; printf '{step}'; seq 2000"
    progress = described_progress(tmp_path, script)
    assert progress == "[##########----------] 50/100  loss 8.397  154.8 images/s"


def test_a_description_as_json_has_pods_and_events(finished):
    items = json.loads(finished.run("describe", "pi", "-o", "json")[1])["items"]
    assert {each["kind"] for each in items} == {"MPIJob", "Pod", "Event"}


@pytest.mark.parametrize("words", [("scale", "--workers", "3"), ("suspend",), ("resume",)])
def test_a_finished_job_cannot_be_changed(finished, words):
    code, _, err = finished.run(words[0], "pi", *words[1:])
    assert code == 1
    assert re.search(r"pi \(run .*\) is not running: it has ended \(Failed\)", err)


def test_the_running_job_comes_first_and_is_selected(shell, run, tmp_path):
    other = job(tmp_path, ["echo", "done"])
    assert shell.run("run", other)[0] == 0
    assert states(shell) == ["Running", "Succeeded"]
    assert shell.run("logs", "pi") == (0, "ready\n", "")


def test_an_interrupted_job_is_recorded_and_a_deleted_one_is_not(shell, run, tmp_path):
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=60)
    assert states(shell) == ["Interrupted"]
    with started(shell, tmp_path) as other:
        assert shell.run("delete", "pi")[0] == 0
        other.wait(60)
    assert states(shell) == ["Interrupted"]
    assert re.fullmatch(r"pi \(run .*\) deleted\n", shell.run("delete", "pi")[1])
    assert states(shell) == []


def test_all_finished_jobs_are_deleted_at_once(shell, run, tmp_path):
    shell.run("run", job(tmp_path, ["true"]))
    assert shell.run("delete", "--finished")[1] == "1 job deleted\n"
    assert states(shell) == ["Running"]
    assert shell.run("delete")[0] == 2


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_a_followed_log_has_every_attempt_and_ends_with_the_job(shell, tmp_path, policy):
    script = (
        "echo try >> tries; echo try $(wc -l < tries);"
        " until test -e go; do sleep 0.05; done; test $(wc -l < tries) = 2"
    )
    file = job(tmp_path, ["sh", "-c", script], runPolicy={"backoffLimit": 3})
    setting = f"spec.mpiReplicaSpecs.Launcher.restartPolicy={policy}"
    process = shell.start("run", file, "--set", setting)
    assert process.stdout.readline() == "try 1\n"
    following = shell.start("logs", "pi", "--follow")
    assert following.stdout.readline() == "try 1\n"
    (tmp_path / "go").touch()
    assert following.communicate(timeout=30) == ("try 2\n", "")
    assert process.communicate(timeout=30)[0] == "try 2\n"


def test_a_state_directory_may_be_deep(tmp_path):
    home = tmp_path.joinpath(*["a-rather-long-name"] * 6)
    with new_shell(home) as shell, started(shell, tmp_path):
        assert shell.run("logs", "pi") == (0, "ready\n", "")


def test_other_users_cannot_connect_to_a_run(reader):
    [run] = [entry for entry in reader.runs.iterdir() if entry.is_dir()]
    modes = [stat.S_IMODE(each.stat().st_mode) for each in (reader.runs, run, run / "socket")]
    assert modes == [0o700, 0o700, 0o600]


def test_no_heavy_module_is_imported():
    modules = ", ".join(f"mpi_operator.cli.verbs.{module}" for module in MODULES)
    program = f"import sys, {modules}; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
