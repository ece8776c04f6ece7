"""`mpijob convert`: what it prints, what it says about that, and how it ends."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from mpi_operator.api import decode_job, warnings
from mpi_operator.api.conversion import VERSIONS, UnitSettings, convert
from mpi_operator.cli.main import mpijob as program
from tests.support.mpijobs import changed, mpijob

HERE = Path(__file__).parent
SEEDS = sorted((HERE / "seeds").glob("*.yaml"))
ERROR = "mpi-operator.kubeflow.org/conversion-error"
TRANSPORT = "mpi-operator.kubeflow.org/transport"
WRITTEN_IN = "mpi-operator.kubeflow.org/written-in"


def run(*arguments: object, stdin: str = ""):
    return CliRunner().invoke(program, ["convert", *map(str, arguments)], input=stdin)


def converted(manifest, *arguments):
    """The one converted job, and the lines about it."""
    result = run("-f", "-", *arguments, stdin=yaml.safe_dump(manifest))
    is_lossy = "cannot express it" in result.stderr
    assert result.exit_code == (1 if is_lossy else 0), result.output
    return yaml.safe_load(result.stdout), result.stderr.splitlines()


def v1(launcher=None, worker=None, **spec):
    job = mpijob("old", launcher=launcher, worker=worker, **spec)
    return job | {"apiVersion": "kubeflow.org/v1", "metadata": {"name": "old"}}


def v1alpha1(**spec):
    container = {"name": "mpi", "image": "example.com/mpi:1", "command": ["mpirun", "hi"]}
    return {
        "apiVersion": "kubeflow.org/v1alpha1",
        "kind": "MPIJob",
        "metadata": {"name": "old"},
        "spec": {"template": {"spec": {"containers": [container]}}, **spec},
    }


def test_what_the_target_cannot_say_makes_the_exit_code_1():
    job = mpijob("pi")
    containers = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    containers[0]["env"] = [{"name": "A", "value": "1"}]
    done = run("-f", "-", "--to", "v1alpha1", stdin=yaml.safe_dump(job))
    assert done.exit_code == 1
    assert (
        '.env: [{"name": "A", "value": "1"}] is dropped: v1alpha1 cannot express it' in done.stderr
    )
    assert yaml.safe_load(done.stdout)["apiVersion"] == "kubeflow.org/v1alpha1"


# --- whole files, to be read in review


@pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.stem)
def test_the_jobs_of_old_documentation(path):
    golden = HERE / "golden" / path.name
    result = run("-f", path, "--gpus-per-node", 8)
    notes = result.stderr.replace(f"{path}: ", "# ")
    assert result.exit_code == 0
    assert notes + result.stdout == golden.read_text()


@pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.stem)
def test_the_result_is_a_valid_job_of_v2beta1(path):
    job = yaml.safe_load(run("-f", path).stdout)
    decode_job(job)
    assert warnings(job) == []


# --- what the result is


@pytest.mark.parametrize("to", VERSIONS)
@pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.stem)
def test_a_clean_result_means_the_same_in_v2beta1(path, to):
    """But for what that version cannot express, which the notes name."""
    result = run("-f", path, "--to", to)
    before, after = map(meaning, [path.read_text(), result.stdout])
    assert f"{to} cannot express it" in result.stderr or before == after


def meaning(text):
    """What a job says in v2beta1, with the default that Kubernetes has for Jobs."""
    job = convert(yaml.safe_load(text), "v2beta1", UnitSettings())
    job["spec"].setdefault("runPolicy", {}).setdefault("backoffLimit", 6)
    return decode_job(job).spec


@pytest.mark.parametrize("to", VERSIONS)
def test_nothing_of_servers_and_conversions_is_left(to):
    job = v1(cleanPodPolicy="All") | {"status": {"startTime": "2026-01-31T12:00:00Z"}}
    job["metadata"] |= {"uid": "1", "resourceVersion": "2", "labels": {"team": "a"}}
    job["metadata"]["annotations"] = {
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
        "mpi-operator.kubeflow.org/written-in": "v1alpha2",
        "mpi-operator.kubeflow.org/converted-fields": "{}",
        "mine": "kept",
    }
    result, _ = converted(job, "--to", to)
    assert result["apiVersion"] == f"kubeflow.org/{to}"
    assert result["metadata"] == {
        "name": "old",
        "labels": {"team": "a"},
        "annotations": {"mine": "kept"},
    }
    assert "status" not in result


def test_defaults_of_the_server_are_not_added_but_kept_if_they_were_written():
    written, _ = converted(v1(slotsPerWorker=1))
    assert set(written["spec"]) == {"slotsPerWorker", "mpiReplicaSpecs", "runPolicy"}
    given, _ = converted(v1(sshAuthMountPath="/root/.ssh"))
    assert given["spec"]["sshAuthMountPath"] == "/root/.ssh"
    short, _ = converted(v1alpha1(replicas=1))
    assert "slotsPerWorker" not in short["spec"]
    assert "replicas" not in short["spec"]["mpiReplicaSpecs"]["Launcher"]
    assert short["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 1, "others make no workers"


@pytest.mark.parametrize(
    ("to", "source", "expected"),
    [
        pytest.param("v2beta1", "v1", "v1", id="an old job behaves as before"),
        pytest.param("v1", "v2beta1", "v2beta1", id="a job in an old version stays as it is"),
        pytest.param("v1", "v1", None, id="its own version needs no annotation"),
    ],
)
def test_keep_behavior(to, source, expected):
    job = v1() | {"apiVersion": f"kubeflow.org/{source}", "status": {}}
    result, notes = converted(job, "--to", to, "--keep-behavior")
    assert result["metadata"].get("annotations", {}).get(WRITTEN_IN) == expected
    assert not [note for note in notes if "failed worker" in note]


# --- what is said about it

GPU = {"resources": {"limits": {"nvidia.com/gpu": 1}}}


def with_container(role, **fields):
    job = v1(runPolicy={})
    path = f"spec.mpiReplicaSpecs.{role}.template.spec.containers.0"
    return changed(job, path, {"name": "mpi", "image": "example.com/mpi:1", **fields})


@pytest.mark.parametrize(
    ("job", "note"),
    [
        pytest.param(
            v1(),
            'spec.mpiReplicaSpecs[Launcher].restartPolicy: "Never" is explicit now; v1 implies it',
            id="a restart policy that is implied",
        ),
        pytest.param(
            v1(launcher={"restartPolicy": "Always"}),
            'spec.mpiReplicaSpecs[Launcher].restartPolicy: "Always" becomes "OnFailure"',
            id="a restart policy that v2beta1 has not",
        ),
        pytest.param(
            v1(launcher={"restartPolicy": "ExitCode"}),
            'spec.mpiReplicaSpecs[Launcher].restartPolicy: "ExitCode" is kept by the annotation '
            'mpi-operator.kubeflow.org/launcher-restart-policy; the field becomes "Never"',
            id="a restart policy of the launcher that an annotation has",
        ),
        pytest.param(
            v1(worker={"restartPolicy": "Always"}),
            'spec.mpiReplicaSpecs[Worker].restartPolicy: "Always" is kept by the annotation '
            'mpi-operator.kubeflow.org/worker-restart-policy; the field becomes "OnFailure"',
            id="a restart policy of workers that an annotation has",
        ),
        pytest.param(
            v1(mainContainer="mpi"),
            'spec.mainContainer: "mpi" is kept by the annotation '
            "mpi-operator.kubeflow.org/main-container",
            id="a field that is an annotation now",
        ),
        pytest.param(
            v1(runPolicy={"ttlSecondsAfterFinished": 60}),
            "ttlSecondsAfterFinished no longer deletes the MPIJob, only its launcher; the "
            'annotation mpi-operator.kubeflow.org/ttl-deletes-job: "true" restores that',
            id="TTL",
        ),
        pytest.param(
            v1(cleanPodPolicy="All"),
            "cleanPodPolicy All no longer deletes the launcher, with its logs",
            id="clean-up",
        ),
        pytest.param(
            v1(),
            "a failed worker is replaced, and no longer fails the job",
            id="failed workers",
        ),
        pytest.param(
            v1(),
            "launchers reach workers by ssh, for which images need an sshd, instead of exec; the "
            "annotation mpi-operator.kubeflow.org/transport: exec keeps exec",
            id="transport",
        ),
        pytest.param(
            v1(),
            "launchers have the label training.kubeflow.org/job-role: launcher",
            id="a label",
        ),
        pytest.param(
            with_container("Launcher", **GPU),
            "spec.runLauncherAsWorker: true is explicit now; v1 implies it",
            id="a launcher with a GPU",
        ),
        pytest.param(
            with_container("Worker", command=["/bin/sleep", "365d"]),
            "spec.mpiReplicaSpecs[Worker].template.spec.containers[0].command: workers that sleep "
            "start no sshd; remove the command",
            id="workers that sleep",
        ),
        pytest.param(
            changed(
                v1(mainContainer="mpi"),
                "spec.mpiReplicaSpecs.Worker.template.spec.containers",
                [{"name": "proxy"}, {"name": "mpi", "command": ["sleep"]}],
            ),
            "spec.mpiReplicaSpecs[Worker].template.spec.containers[1].command: workers that sleep "
            "start no sshd; remove the command",
            id="workers that sleep in a main container that is not the first",
        ),
        pytest.param(
            with_container("Worker", args=["mpirun", "hi"]),
            'spec.mpiReplicaSpecs[Worker].template.spec.containers[0].args: ["mpirun", '
            '"hi"] has no effect and is dropped',
            id="arguments without effect",
        ),
        pytest.param(
            v1(clenPodPolicy="All"),
            'spec.clenPodPolicy: "All" has no effect and is dropped',
            id="a typing error",
        ),
        pytest.param(
            v1alpha1(gpus=16),
            "spec.gpus: 16 means 2 workers, with 8 per node",
            id="GPUs",
        ),
        pytest.param(
            v1alpha1(processingUnits=4, processingUnitsPerNode=4),
            "spec.processingUnits: 4 means 1 worker, with 4 per node",
            id="processing units",
        ),
        pytest.param(
            v1alpha1(replicas=2),
            'spec.runPolicy.cleanPodPolicy: "All" is explicit now; v1alpha1 implies it',
            id="clean-up that is implied",
        ),
    ],
)
def test_notes(job, note):
    _, notes = converted(job, "--gpus-per-node", 8)
    assert f"standard input: old: {note}" in notes


@pytest.mark.parametrize(
    ("job", "silent"),
    [
        pytest.param(v1(runPolicy={"cleanPodPolicy": "Running"}), "cleanPodPolicy", id="clean-up"),
        pytest.param(v1(cleanPodPolicy="All"), "dropped", id="a field that has moved"),
        pytest.param(v1(mainContainer="mpi"), "dropped", id="a field that is an annotation now"),
        pytest.param(
            changed(v1(), "metadata.annotations", {TRANSPORT: "exec"}), "sshd", id="a transport"
        ),
        pytest.param(
            v1(launcher={"restartPolicy": "ExitCode"}), '"ExitCode" becomes', id="a restart policy"
        ),
    ],
)
def test_nothing_is_said_about_what_stays_the_same(job, silent):
    _, notes = converted(job)
    assert not [note for note in notes if silent in note]


def test_what_the_target_cannot_say_is_named():
    job = mpijob("new", launcher={"template": {"metadata": {"labels": {"a": "b"}}}})
    _, notes = converted(job, "--to", "v1alpha1")
    assert any(
        "spec.mpiReplicaSpecs[Launcher].template.metadata" in note and "cannot express it" in note
        for note in notes
    ), notes


def test_what_stays_in_the_file_but_means_nothing_there_is_named():
    job = with_container("Worker", args=["hi"]) | {"apiVersion": "kubeflow.org/v2beta1"}
    _, notes = converted(job, "--to", "v1")
    [note] = (note for note in notes if ".args" in note)
    assert note.endswith('.args: ["hi"] has no effect there: v1 cannot express it')


def test_long_values_are_shortened():
    job = with_container("Worker", args=["x" * 30, "y" * 30, "z" * 30])
    _, notes = converted(job)
    [note] = (note for note in notes if ".args" in note)
    assert '"xxx' in note
    assert "… has no effect" in note
    assert "zz" not in note


# --- files


def write(path, *documents):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump_all(documents))
    return path


SERVICE = "# one port\napiVersion: v1\nkind: Service\nmetadata: {name: web}  # for people\n"


def test_other_objects_stay_as_they_are_with_their_comments(tmp_path):
    file = tmp_path / "all.yaml"
    file.write_text(f"{SERVICE}---\n{yaml.safe_dump(v1())}")
    result = run("-f", file)
    assert result.stdout.startswith(SERVICE + "---\napiVersion: kubeflow.org/v2beta1\n")
    assert f"{file}: Service web is not an MPIJob and stays as it is" in result.stderr


def test_a_job_that_is_there_already_keeps_its_text():
    text = f"# mine\n{yaml.safe_dump(mpijob('new'))}"
    result = run("-f", "-", stdin=text)
    assert result.stdout == text
    assert result.stderr == "standard input: new: is v2beta1 already\n"


def test_lost_comments_are_mentioned_once():
    text = f"# mine\n{yaml.safe_dump(v1())}"
    result = run("-f", "-", stdin=f"{text}---\n{text}")
    assert result.stderr.count("Comments in converted jobs are lost") == 1


@pytest.mark.parametrize("kind", ["List", "MPIJobList"])
def test_lists_are_converted_item_by_item(kind):
    listing = {"apiVersion": "kubeflow.org/v1", "kind": kind, "items": [v1(), {"kind": "Pod"}]}
    result, _ = converted(listing)
    assert [each.get("apiVersion") for each in result["items"]] == ["kubeflow.org/v2beta1", None]


def test_json():
    result = run("-f", "-", "-o", "json", stdin=yaml.safe_dump_all([v1(), v1()]))
    assert [each["kind"] for each in json.loads(result.stdout)["items"]] == ["MPIJob"] * 2


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        pytest.param("a: [", "mpijob: cannot parse {file}:1:5: ", id="no YAML"),
        pytest.param(
            yaml.safe_dump(v1alpha1(gpus=12)),
            "mpijob: cannot convert old in {file}: spec.gpus: Invalid value: 12: ",
            id="units that do not divide",
        ),
        pytest.param(
            yaml.safe_dump(v1() | {"apiVersion": "kubeflow.org/v9"}),
            "mpijob: cannot convert old in {file}: apiVersion: 'kubeflow.org/v9' is not an API",
            id="an unknown version",
        ),
        pytest.param(
            yaml.safe_dump(v1(slotsPerWorker=float("nan"))),
            "mpijob: cannot convert old in {file}: a value cannot be written as JSON",
            id="a value that JSON has not",
        ),
        pytest.param(
            yaml.safe_dump(v1() | {"metadata": {"name": "old", "annotations": [1]}}),
            "mpijob: cannot convert old in {file}: metadata.annotations: must be an object",
            id="annotations in a list",
        ),
        pytest.param(
            yaml.safe_dump(v1() | {"metadata": "old"}),
            "mpijob: cannot convert without a name in {file}: metadata: must be an object",
            id="no metadata",
        ),
        pytest.param(
            yaml.safe_dump(v1() | {"metadata": {"annotations": {ERROR: [1]}}, "spec": {}}),
            f"mpijob: cannot convert without a name in {{file}}: metadata.annotations[{ERROR}]: ",
            id="an error that is no text",
        ),
    ],
)
def test_what_cannot_be_converted_does_not_stop_the_others(tmp_path, bad, message):
    file = tmp_path / "bad.yaml"
    file.write_text(bad)
    result = run("-f", file, "-f", write(tmp_path / "good.yaml", v1()), "--gpus-per-node", 8)
    assert result.exit_code == 2
    assert message.format(file=file) in result.stderr
    assert yaml.safe_load(result.stdout)["metadata"]["name"] == "old"


HOSTILE = "a\nmpijob: all is well\x1b[2K\x1b]0;title\a\x9b1m\u202e"


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(v1() | {"metadata": {"name": HOSTILE}}, id="a job"),
        pytest.param(v1() | {"metadata": {"name": HOSTILE}, "apiVersion": "kubeflow.org/v9"}),
        pytest.param(v1() | {"apiVersion": f"kubeflow.org/{HOSTILE}"}, id="a version"),
        pytest.param({"kind": HOSTILE, "metadata": {"name": HOSTILE}}, id="another kind"),
        pytest.param(v1(**{HOSTILE: HOSTILE}), id="a field"),
    ],
)
def test_names_do_not_control_the_terminal(manifest):
    lines = run("-f", "-", stdin=yaml.safe_dump(manifest)).stderr.split("\n")
    assert all(line.isprintable() for line in lines)
    assert not any(line.startswith("mpijob: all is well") for line in lines)


def test_file_names_do_not_control_the_terminal(tmp_path):
    result = run("-f", tmp_path, "-f", f"\x1b[31m{tmp_path}")
    assert "\x1b" not in result.stderr
    (tmp_path / "\x1b[31m").mkdir()
    result = run("-f", tmp_path / "\x1b[31m")
    assert (result.exit_code, "\x1b" in result.stderr) == (2, False)


def test_a_directory_to_a_directory(tmp_path):
    write(tmp_path / "in" / "a.yaml", v1())
    write(tmp_path / "in" / "below" / "b.yml", v1alpha1(replicas=1), {"kind": "Service"})
    result = run("-f", tmp_path / "in", "--output-dir", tmp_path / "out")
    assert result.exit_code == 0
    written = {
        str(path.relative_to(tmp_path / "out")): [
            each["kind"] for each in yaml.safe_load_all(path.read_text())
        ]
        for path in (tmp_path / "out").rglob("*.y*ml")
    }
    assert written == {"a.yaml": ["MPIJob"], "below/b.yml": ["MPIJob", "Service"]}
    assert result.stdout == ""


def test_a_file_that_cannot_be_converted_as_a_whole_is_not_written(tmp_path):
    write(tmp_path / "in" / "a.yaml", v1(), v1() | {"apiVersion": "kubeflow.org/v9"})
    write(tmp_path / "in" / "b.yaml", v1())
    result = run("-f", tmp_path / "in", "--output-dir", tmp_path / "out", "-o", "json")
    assert result.exit_code == 2
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["b.json"]


@pytest.mark.parametrize(
    ("inputs", "output", "message"),
    [
        pytest.param(["-"], "out", "standard input to a directory: it has no name", id="stdin"),
        pytest.param(["in/a.yaml"], "in", "it is also an input", id="in place"),
        pytest.param(["in"], "in/sub", "in/sub/a.yaml: it is also an input", id="below it"),
        pytest.param(["other", "in"], "link", "it is also an input", id="through a link"),
        pytest.param(
            ["in/a.yaml", "other/a.yaml"], "out", "two inputs would be written there", id="twice"
        ),
        pytest.param(["empty"], "out", "no file ends with .yaml, .yml, .json", id="nothing"),
    ],
)
def test_files_are_never_overwritten_by_accident(tmp_path, monkeypatch, inputs, output, message):
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("link").symlink_to("in")
    for name in ("in/a.yaml", "in/sub/a.yaml", "other/a.yaml"):
        write(Path(name), v1())
    before = {path: path.read_text() for path in Path().rglob("*.yaml")}
    arguments = [word for name in inputs for word in ("-f", name)]
    result = run(*arguments, "--output-dir", output)
    assert result.exit_code == 2
    assert message in result.stderr
    assert {path: path.read_text() for path in Path().rglob("*.yaml")} == before
    assert not Path("out").exists()


def test_a_missing_file_is_an_error_also_if_its_result_exists(tmp_path):
    write(tmp_path / "out" / "a.yaml", v1())
    result = run("-f", tmp_path / "a.yaml", "--output-dir", tmp_path / "out")
    assert result.exit_code == 2
    assert "a.yaml: No such file" in result.stderr
