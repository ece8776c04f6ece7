"""`mpijob run` of files that have more than a job, in a process of its own."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.local.environments import environment
from tests.local.run_processes import marked
from tests.local.shell import Shell
from tests.support.mpijobs import mpijob
from tests.support.waiting import block_until

SECRET = "hunter2"


@pytest.fixture
def shell(tmp_path):
    made = Shell(tmp_path / "state", environment("OpenMPI"))
    yield made
    block_until(lambda: marked(made.runs) == [])


def pod(script: str, **spec: Any) -> dict[str, Any]:
    """A role whose pods run a shell script."""
    own = ("env", "envFrom", "volumeMounts")
    fields: dict[str, Any] = {name: spec.pop(name) for name in own if name in spec}
    container = {"name": "mpi", "image": "none", "command": ["sh", "-c", script], **fields}
    return {"template": {"spec": {"containers": [container], **spec}}}


def job(script: str, name: str = "pi", workers: int = 1, **launcher: Any) -> dict[str, Any]:
    """A job whose launcher runs a script, and whose workers wait."""
    worker = {"replicas": workers, **pod("exec sleep 600")}
    policy = {"backoffLimit": 0}
    return mpijob(name, launcher=pod(script, **launcher), worker=worker, runPolicy=policy)


def an(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **fields}


def file(tmp_path: Path, *documents: dict[str, Any]) -> str:
    path = tmp_path / "job.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump_all(documents))
    return str(path)


def lines(out: str) -> list[str]:
    return [line.partition(" | ")[2] or line for line in out.splitlines()]


# --- ConfigMaps, Secrets and other kinds


NEEDS: dict[str, Any] = {
    "env": [{"name": "P", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}],
    "envFrom": [{"configMapRef": {"name": "train"}}],
    "volumes": [
        {
            "name": "both",
            "projected": {
                "sources": [{"configMap": {"name": "train"}}, {"secret": {"name": "db"}}]
            },
        }
    ],
    "volumeMounts": [{"name": "both", "mountPath": "/both"}],
}
READS = 'echo "$STEPS $(cat /both/STEPS)"; test ${#P} = 7 && test "$(cat /both/password)" = "$P"'
CONFIG = an("ConfigMap", "train", data={"STEPS": "100"})
PASSWORD = an("Secret", "db", stringData={"password": SECRET})


def test_config_maps_and_secrets_of_the_file_reach_the_job(shell, tmp_path):
    items = an("List", "all", items=[CONFIG, PASSWORD, an("Service", "web")])
    code, out, err = shell.run("run", file(tmp_path, job(READS, **NEEDS), items))
    assert (code, lines(out)) == (0, ["100 100"]), err
    assert "Service web: no effect on this machine" in err


def test_config_maps_and_secrets_of_the_command_line_reach_the_job(shell, tmp_path):
    for name, content in {"STEPS": "7", "pw.txt": SECRET}.items():
        (tmp_path / name).write_text(content)
    given = [f"--configmap=train={tmp_path}/STEPS", f"--secret-file=db:password={tmp_path}/pw.txt"]
    code, out, err = shell.run("run", file(tmp_path, job(READS, **NEEDS), CONFIG), *given)
    assert (code, lines(out)) == (0, ["7 7"]), err


def test_a_job_does_not_start_without_what_it_needs(shell, tmp_path):
    path = file(tmp_path, job("touch started", **NEEDS))
    code, out, err = shell.run("run", path)
    assert (code, out) == (2, "")
    assert err.splitlines() == [
        f"mpijob: missing in {path}:",
        "  pi launcher: ConfigMap train does not exist",
        "  pi launcher: Secret db does not exist",
        f"mpijob run {path} --configmap train=DIR --secret-file db=PATH  # provides it",
    ]
    assert not (tmp_path / "started").exists()


def test_secrets_are_not_left_behind(shell, tmp_path):
    code, out, err = shell.run(
        "run", file(tmp_path, job(READS, **NEEDS), CONFIG, PASSWORD), "--keep", "-o", "json"
    )
    assert code == 0, out + err
    assert SECRET not in out + err
    state = tmp_path / "state"
    left = [path for path in state.rglob("*") if path.is_file() and path.name != ".lock"]
    assert left
    assert not [path for path in left if SECRET.encode() in path.read_bytes()]


# --- claims and other volumes


DATA: dict[str, Any] = {
    "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
    "volumeMounts": [{"name": "v", "mountPath": "/data"}],
}
COUNTS = "echo line >> /data/lines; wc -l < /data/lines"


@pytest.mark.parametrize("kind", ["namespaces", "plain"])
def test_a_claim_is_kept_between_runs_and_private(shell, tmp_path, kind):
    path = file(tmp_path, job(COUNTS, **DATA), an("PersistentVolumeClaim", "data"))
    results = [shell.run("run", path, "--sandbox", kind) for _ in range(2)]
    assert [(code, lines(out)) for code, out, _ in results] == [(0, ["1"]), (0, ["2"])], results
    place = tmp_path / "state" / "mpi-operator" / "volumes"
    assert (place / "data" / "lines").read_text() == "line\nline\n"
    assert place.stat().st_mode & 0o777 == 0o700
    assert f"PersistentVolumeClaim data is the directory {place}/data, kept" in results[0][2]


def test_a_claim_that_is_not_in_the_file_is_given_as_a_directory(shell, tmp_path):
    path = file(tmp_path, job(COUNTS, **DATA))
    code, _, err = shell.run("run", path)
    assert code == 2
    assert "pi launcher: PersistentVolumeClaim data does not exist" in err
    assert f"mpijob run {path} --volume data=DIR" in err
    (tmp_path / "mine").mkdir()
    code, out, err = shell.run("run", path, "--volume", f"data={tmp_path}/mine")
    assert (code, lines(out)) == (0, ["1"]), err
    assert (tmp_path / "mine" / "lines").exists()


# --- jobs that cannot run here


def asking(**requests: str) -> dict[str, Any]:
    """A job whose launcher requests resources."""
    made = job("touch started")
    [container] = made["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    container["resources"] = {"requests": requests}
    return made


NO_PATH: dict[str, Any] = {"volumes": [{"name": "v", "hostPath": {"path": "/no/such/path"}}]}
NEVER = [
    pytest.param(asking(cpu="1000"), "--oversubscribe", id="CPUs"),
    pytest.param(asking(memory="1000Ti"), "--oversubscribe", id="memory"),
    pytest.param(asking(**{"nvidia.com/gpu": "99"}), "requests[nvidia.com/gpu]=0", id="GPUs"),
    pytest.param(job("touch started", **NO_PATH), "--volume v=DIR", id="a host path"),
]


@pytest.mark.parametrize(("never", "helps"), NEVER)
def test_a_job_that_can_never_run_ends_with_the_option_that_helps(shell, tmp_path, never, helps):
    code, out, err = shell.run("run", file(tmp_path, never))
    assert (code, out) == (2, "")
    assert err.startswith("mpijob: the job cannot run on this machine:\n  pi")
    assert helps in err.splitlines()[-1]
    assert not (tmp_path / "started").exists()


def test_the_options_help(shell, tmp_path):
    made = asking(cpu="1000", **{"nvidia.com/gpu": "99"})
    path = "spec.mpiReplicaSpecs.Launcher.template.spec.containers[0].resources"
    settings = ("--oversubscribe", "--set", f"{path}.requests[nvidia.com/gpu]=0")
    code, out, err = shell.run("run", file(tmp_path, made), *settings)
    assert code == 0, out + err
    assert (tmp_path / "started").exists()


def test_fields_without_effect_are_named_in_one_line(shell, tmp_path):
    made = job("true", nodeSelector={"disk": "fast"}, tolerations=[{"operator": "Exists"}])
    code, _, err = shell.run("run", file(tmp_path, made))
    assert code == 0, err
    assert err.count("No effect on this machine: nodeSelector, tolerations\n") == 1


# --- runs beside each other


def test_a_run_waits_for_the_cpus_of_another_and_says_for_which(shell, tmp_path):
    """Even if the other run is killed: what it held is free then."""
    half = f"{len(os.sched_getaffinity(0)) * 1000 * 6 // 10}m"
    paths = []
    for name, script in (("first", "echo ready; sleep 600"), ("second", "echo done")):
        made = asking(cpu=half)
        made["metadata"]["name"] = name
        launcher = made["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
        launcher["containers"][0]["command"] = ["sh", "-c", script]
        paths.append(file(tmp_path / name, made))
    first = shell.start("run", paths[0])
    assert first.stdout is not None
    assert first.stdout.readline().endswith("ready\n")
    [run] = [entry.name for entry in shell.runs.iterdir() if entry.is_dir()]
    second = shell.start("run", paths[1])
    assert second.stderr is not None
    line = next(line for line in second.stderr if "Insufficient cpu" in line)
    assert f"held by first in run {run})" in line
    first.kill()
    first.communicate()
    out, err = second.communicate(timeout=60)
    assert (second.returncode, lines(out)) == (0, ["done"]), err


# --- several jobs


def test_several_jobs_run_together_and_the_first_failure_counts(shell, tmp_path):
    meets = "touch {0}; while ! test -e {1}; do sleep 0.05; done; echo {0} met {1}; exit {2}"
    jobs = [
        job(meets.format("a", "b", 0), "good"),
        job(meets.format("b", "a", 3), "bad"),
        job("exit 4", "worse"),
    ]
    code, out, err = shell.run("run", file(tmp_path, *jobs, CONFIG))
    assert code == 3, err
    printed = dict(line.split(" | ") for line in out.splitlines())
    assert {pod.rpartition("-")[0]: text for pod, text in printed.items()} == {
        "good-launcher": "a met b",
        "bad-launcher": "b met a",
    }
    verdicts = err.splitlines()[-3:]
    assert [line.split(" ")[:2] for line in verdicts] == [
        ["good", "succeeded"],
        ["bad", "failed:"],
        ["worse", "failed:"],
    ]
    states = json.loads(shell.run("list", "-o", "json")[1])["items"]
    assert {each["metadata"]["name"] for each in states} == {"good", "bad", "worse"}
    assert "b met a" in shell.run("logs", "bad")[1]


def test_jobs_of_different_mpis_do_not_run_together(shell, tmp_path):
    other = job("true", "other")
    other["spec"]["mpiImplementation"] = "MPICH"
    code, _, err = shell.run("run", file(tmp_path, job("true"), other))
    assert code == 2
    assert "must use the same MPI here, found OpenMPI, MPICH" in err


RUNS_ON = "echo ready; exec sleep 600"


@pytest.fixture
def two_jobs(shell, tmp_path):
    """A run of two jobs, one of which runs on; stopped at the end."""
    fails = "printf 'ValueError: \\033[2J\\n' >&2; exit 3"
    process = shell.start("run", file(tmp_path, job(RUNS_ON, "on"), job(fails, "bad")))
    assert process.stdout is not None
    assert any("ready" in line for line in process.stdout)
    yield process
    process.terminate()
    process.communicate(timeout=30)


def test_each_job_of_a_run_ends_by_itself(shell, two_jobs):
    code, out, err = shell.run("wait", "bad")
    assert (code, two_jobs.poll()) == (3, None), err
    assert "ValueError: \\x1b[2J" in out, "the cause, without effect on a terminal"
    two_jobs.terminate()
    two_jobs.communicate(timeout=30)
    assert [shell.run("wait", name)[0] for name in ("on", "bad")] == [143, 3]
    assert shell.run("delete", "bad")[0] == 0
    assert "ready" in shell.run("logs", "on")[1]
    assert shell.run("logs", "bad")[0] == 1


def test_a_job_that_is_deleted_while_another_runs_leaves_nothing(shell, two_jobs):
    assert shell.run("wait", "bad")[0] == 3
    assert shell.run("delete", "on")[0] == 0
    two_jobs.communicate(timeout=30)
    listed = json.loads(shell.run("list", "-o", "json")[1])["items"]
    assert [each["metadata"]["name"] for each in listed] == ["bad"]
    [finished] = (shell.runs.parent / "finished").iterdir()
    pods = {path.read_text().partition("-")[0] for path in finished.glob("logs/*/.pod")}
    assert pods == {"bad"}


def test_all_jobs_end_when_their_output_is_no_longer_read(shell, tmp_path):
    prints = job("while echo line; do sleep 0.05; done", "prints")
    process = shell.start("run", file(tmp_path, prints, job("exec sleep 600", "silent")))
    assert process.stdout is not None
    assert process.stderr is not None
    assert "line" in process.stdout.readline()
    process.stdout.close()
    with process.stderr:
        verdicts = process.stderr.read().splitlines()[-2:]
    assert process.wait(30) == 141
    assert [line.split(" (")[0] for line in verdicts] == [
        f"{name} was stopped: its output is no longer read" for name in ("prints", "silent")
    ]


def test_the_exit_code_of_an_init_container_is_that_of_the_run(shell, tmp_path):
    init = {"name": "first", "image": "none", "command": ["sh", "-c", "exit 7"]}
    path = file(tmp_path, job("true", initContainers=[init], restartPolicy="Never"))
    code, _, err = shell.run("run", path)
    assert code == 7, err
