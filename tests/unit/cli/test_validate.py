"""`mpijob validate`: files are checked without running them."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from mpi_operator.cli.main import mpijob
from tests.support.mpijobs import mpijob as job
from tests.support.mpijobs import template

EXAMPLES = Path(__file__).parents[3] / "examples"


def validate(*words, stdin=None):
    """Exit code, lines of stdout, stderr."""
    done = CliRunner().invoke(mpijob, ["validate", *map(str, words)], input=stdin)
    assert done.exception is None or isinstance(done.exception, SystemExit)
    return done.exit_code, done.stdout.splitlines(), done.stderr


@pytest.fixture
def file(tmp_path):
    """Write manifests or a text into a file."""

    def write(*documents):
        path = tmp_path / "job.yaml"
        texts = [each if isinstance(each, str) else yaml.safe_dump(each) for each in documents]
        path.write_text("---\n".join(texts))
        return path

    return write


def test_every_example_is_valid():
    code, lines, _ = validate(EXAMPLES)
    assert code == 0
    # Old manifests are as people have them.
    assert [line for line in lines[:-1] if "spec.cleanPodPolicy: deprecated" not in line] == []


def test_a_valid_job(file):
    assert validate(file(job("pi")), "--strict") == (
        0,
        ["1 job in 1 file: 0 errors, 0 warnings"],
        "",
    )


def test_an_error_has_its_file_line_and_field(file):
    path = file(
        "# two documents\nkind: ConfigMap\nmetadata: {name: a}\n", job("pi", slotsPerWorker=-1)
    )
    text = path.read_text().splitlines()
    line = next(n for n, each in enumerate(text, 1) if "slotsPerWorker" in each)
    code, lines, _ = validate(path)
    assert code == 1
    assert lines[0].startswith(
        f"{path}:{line}: error: MPIJob pi: spec.slotsPerWorker: Invalid value: -1: must be "
    )


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        pytest.param(
            [yaml.safe_dump(job("pi")) + "kind: MPIJob\n"],
            "error: kind: the key is written twice",
            id="a key twice",
        ),
        pytest.param(
            [job("pi"), job("pi")],
            "error: MPIJob pi: metadata.name: already used by another object in this file",
            id="a name twice",
        ),
        pytest.param(
            [job("pi"), {"kind": "MPIjob"}],
            "error: kind: unknown kind MPIjob; did you mean MPIJob?",
            id="a misspelt kind",
        ),
        pytest.param([job("pi"), "- 1\n"], "not an object: each document needs a", id="no object"),
        pytest.param(
            [job("pi"), {"kind": "Secret", "metadata": {"name": "A"}}],
            "metadata.name must be a lower-case DNS name",
            id="an invalid Secret",
        ),
        pytest.param(
            [job("pi") | {"metadata": 3}], "error: MPIJob: metadata: must be", id="metadata"
        ),
        pytest.param(
            [job("pi") | {"apiVersion": "kubeflow.org/v9"}],
            "apiVersion: 'kubeflow.org/v9' is not an API version of MPIJobs",
            id="an unknown version",
        ),
        pytest.param(
            [{name: value for name, value in job("pi").items() if name != "apiVersion"}],
            "error: MPIJob pi: apiVersion: Required value: use one of kubeflow.org/v2beta1",
            id="no version",
        ),
        pytest.param(
            [job("pi"), {"kind": "List", "items": 5}],
            "error: List: items must be a list of objects",
            id="a list without a list",
        ),
    ],
)
def test_errors(file, documents, message):
    code, lines, _ = validate(file(*documents))
    assert code == 1
    assert any(message in line for line in lines), lines


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        pytest.param(
            [job("pi", slotsPerWorkr=1)],
            "warning: MPIJob pi: spec.slotsPerWorkr: unknown field, ignored; did you mean slotsPer",
            id="an unknown field",
        ),
        pytest.param(
            [job("pi"), {"kind": "Service", "metadata": {"name": "web"}}],
            "warning: Service web: not an MPIJob, not checked",
            id="another kind",
        ),
        pytest.param([{"kind": "Service"}], "warning: no MPIJob in this file", id="no job"),
    ],
)
def test_warnings_are_errors_only_if_strict(file, documents, message):
    path = file(*documents)
    code, lines, _ = validate(path)
    assert code == 0
    assert any(message in line for line in lines), lines
    assert validate(path, "--strict")[0] == 1


def test_jobs_of_older_versions_are_checked_in_their_own_terms(file):
    old = {
        "apiVersion": "kubeflow.org/v1alpha1",
        "kind": "MPIJob",
        "metadata": {"name": "pi"},
        "spec": {"template": template(), "gpus": 12},
    }
    code, lines, _ = validate(file(old), "--gpus-per-node", "8")
    assert code == 1
    assert "spec.gpus: Invalid value: 12: must be less than 8 or a multiple of it" in lines[0]


def test_the_items_of_a_list_are_checked(file):
    listing = {"apiVersion": "v1", "kind": "List", "items": [job("a"), job("b", slotsPerWorker=-1)]}
    path = file(listing)
    code, lines, _ = validate(path)
    assert code == 1
    line = next(n for n, each in enumerate(path.read_text().splitlines(), 1) if "slots" in each)
    assert lines[0].startswith(f"{path}:{line}: error: MPIJob b: spec.slotsPerWorker")
    assert lines[-1] == "2 jobs in 1 file: 1 error, 0 warnings"


@pytest.mark.parametrize("content", ["a: [", None], ids=["no YAML", "no file"])
def test_a_file_that_cannot_be_read_does_not_hide_the_others(file, tmp_path, content):
    good = file(job("pi", slotsPerWorker=-1))
    bad = tmp_path / "bad.yaml"
    if content:
        bad.write_text(content)
    code, lines, err = validate(bad, good)
    assert code == 2
    assert "slotsPerWorker" in lines[0]
    assert str(bad) in err
    assert lines[-1] == "1 job in 2 files: 2 errors, 0 warnings"


def test_a_directory_without_manifests_is_an_error(tmp_path):
    assert validate(tmp_path)[0] == 2


def test_standard_input_is_checked():
    code, lines, _ = validate("-", stdin=yaml.safe_dump(job("pi", slotsPerWorker=-1)))
    assert code == 1
    assert lines[0].startswith("standard input:")


def test_problems_as_json(file):
    path = file(job("pi", slotsPerWorker=-1))
    code, lines, _ = validate(path, "-o", "json")
    printed = json.loads("\n".join(lines))
    assert code == 1
    assert (printed["files"], printed["jobs"], printed["unreadable"]) == (1, 1, [])
    [problem] = printed["problems"]
    assert problem["severity"] == "error"
    assert (problem["file"], problem["object"]) == (str(path), "MPIJob pi")
    assert problem["field"] == "spec.slotsPerWorker"
    assert path.read_text().splitlines()[problem["line"] - 1].strip() == "slotsPerWorker: -1"


def test_json_has_lines_too(tmp_path):
    path = tmp_path / "job.json"
    path.write_text(json.dumps(job("pi", slotsPerWorker=-1), indent="\t"))
    code, lines, _ = validate(path)
    assert code == 1
    line = next(n for n, each in enumerate(path.read_text().splitlines(), 1) if "slots" in each)
    assert lines[0].startswith(f"{path}:{line}: error: MPIJob pi: spec.slotsPerWorker")


@pytest.mark.parametrize("mpi", ["openmpi", "mpich", "intel"])
def test_what_a_dry_run_prints_is_valid(mpi):
    words = ["run", "-np", "4", "--mpi", mpi, "--gpus", "1", "--dry-run", "python", "train.py"]
    printed = CliRunner().invoke(mpijob, words).stdout
    assert validate("-", "--strict", stdin=printed)[0] == 0
