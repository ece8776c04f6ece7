"""Ranks in plain sandboxes get what ranks on a cluster get: their own worker's, not the launcher's.

Open MPI starts all of them with one daemon there, in the launcher.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.local.environments import environment
from tests.local.run_processes import marked
from tests.local.shell import Shell, job
from tests.support.waiting import block_until

PLAIN = ("--sandbox", "plain", "-q")
EMPTY: Mapping[str, Any] = {"emptyDir": {}}
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
}


@pytest.fixture
def shell(tmp_path):
    """A shell whose state directory has a space in its path."""
    made = Shell(tmp_path / "my state", environment("OpenMPI"))
    yield made
    block_until(lambda: marked(made.runs) == [])


def write(tmp_path: Path, command: list[str], volume: Mapping[str, Any] = EMPTY) -> str:
    """A job whose launcher and workers have different variables and one volume each."""
    file = Path(job(tmp_path, command))
    manifest = yaml.safe_load(file.read_text())
    for role, spec in manifest["spec"]["mpiReplicaSpecs"].items():
        pod = spec["template"]["spec"]
        pod["volumes"] = [{"name": "shared", **volume}]
        [container] = pod["containers"]
        container["volumeMounts"] = [{"name": "shared", "mountPath": "/shared"}]
        container["env"] = [
            *container.get("env", ()),
            {"name": "OWNER", "value": role},
            {"name": f"ONLY_{role.upper()}", "value": "/shared/of-it"},
        ]
    file.write_text(yaml.safe_dump_all([CLAIM, manifest]))
    return str(file)


def lines(out: str) -> list[str]:
    return sorted(line.removeprefix("launcher | ") for line in out.splitlines())


def test_ranks_have_the_variables_of_their_workers(shell, tmp_path):
    script = 'echo "$OWNER [$ONLY_LAUNCHER] $EXPORTED $HOSTNAME"; test -d "${ONLY_WORKER%/*}"'
    command = ["mpirun", "-x", "EXPORTED=yes", "sh", "-c", script]
    code, out, err = shell.run("run", write(tmp_path, command), *PLAIN)
    assert code == 0, out + err
    assert lines(out) == ["Worker [] yes pi-worker-0", "Worker [] yes pi-worker-1"]


@pytest.mark.parametrize("mpi", ["OpenMPI", "MPICH", "Intel"])
def test_a_rank_has_the_host_name_of_its_worker(tmp_path, mpi):
    shell = Shell(tmp_path / "my state", environment(mpi))
    script = "hostname; mpirun hostname"
    setting = ("--set", f"implementation={mpi}", *PLAIN)
    code, out, err = shell.run("run", write(tmp_path, ["sh", "-c", script]), *setting)
    launcher, *workers = lines(out)
    assert (code, workers) == (0, ["pi-worker-0", "pi-worker-1"]), err
    assert launcher.startswith("pi-launcher")


def test_paths_of_volumes_mean_the_volume_of_the_worker(shell, tmp_path):
    write_own = "echo $HOSTNAME > /shared/name; cat /shared/name"
    script = f"echo launcher > /shared/name; mpirun sh -c '{write_own}'; cat /shared/name"
    code, out, err = shell.run("run", write(tmp_path, ["sh", "-c", script]), *PLAIN)
    assert (code, lines(out)) == (0, ["launcher", "pi-worker-0", "pi-worker-1"]), err


def test_a_directory_in_a_volume_is_that_of_the_worker(shell, tmp_path):
    write_own = "echo $HOSTNAME > name; cat name"
    script = f"cd /shared; echo launcher > name; mpirun sh -c '{write_own}'; cat name"
    code, out, err = shell.run("run", write(tmp_path, ["sh", "-c", script]), *PLAIN)
    assert (code, lines(out)) == (0, ["launcher", "pi-worker-0", "pi-worker-1"]), err


@pytest.mark.parametrize("mpi", ["OpenMPI", "MPICH", "Intel"])
@pytest.mark.parametrize("kind", ["plain", "namespaces"])
def test_a_state_directory_may_have_spaces(tmp_path, mpi, kind):
    shell = Shell(tmp_path / "my state", environment(mpi))
    command = ["mpirun", "sh", "-c", "echo a rank"]
    setting = ("--set", f"implementation={mpi}", "--sandbox", kind, "-q")
    code, out, err = shell.run("run", write(tmp_path, command), *setting)
    assert (code, lines(out)) == (0, ["a rank", "a rank"]), err


@pytest.mark.parametrize("mpi", ["OpenMPI", "MPICH"])
@pytest.mark.parametrize("kind", ["hostPath", "claim", "option"])
def test_paths_of_volumes_may_have_characters_of_the_shell(tmp_path, mpi, kind):
    state, data = tmp_path / "my ståte; (new)", tmp_path / "sp ace é & $more"
    data.mkdir()
    claim = {"persistentVolumeClaim": {"claimName": "data"}}
    volume = {"hostPath": {"path": str(data)}} if kind == "hostPath" else claim
    options = ("--volume", f"data={data}") if kind == "option" else ()
    script = "echo x > /shared/x; mpirun sh -c 'cat /shared/x; echo y > /shared/y'; cat < /shared/y"
    file = write(tmp_path, ["sh", "-c", script], volume)
    shell = Shell(state, environment(mpi))
    code, out, err = shell.run("run", file, *options, "--set", f"implementation={mpi}", *PLAIN)
    assert (code, lines(out)) == (0, ["x", "x", "y"]), err
    assert {each.name for each in tmp_path.iterdir()} == {"job.yaml", state.name, data.name}
    assert kind == "claim" or {each.name for each in data.iterdir()} == {"x", "y"}
