"""Manifests in files, and as text."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mpi_operator.cli.command_errors import InvalidInput
from mpi_operator.cli.manifests import manifest_files, manifest_text
from mpi_operator.cli.manifests.manifest_files import Document

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def values(text: str) -> list[object]:
    return [each.value for each in manifest_files.documents(text, "job.yaml")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a: 1", [{"a": 1}], id="one document"),
        pytest.param("a: 1\n---\nb: 2\n", [{"a": 1}, {"b": 2}], id="two documents"),
        pytest.param("---\na: 1\n---\n---\n# no more\n", [{"a": 1}], id="empty documents"),
        pytest.param("a: |\n  x\n  ---\n  y\n", [{"a": "x\n---\ny\n"}], id="dashes in a text"),
        pytest.param("at: 2026-01-31T12:00:00Z", [{"at": "2026-01-31T12:00:00Z"}], id="a time"),
        pytest.param('at: !!timestamp "abc"', [{"at": "abc"}], id="what is called a time"),
        pytest.param('{\n\t"a": 1\n}', [{"a": 1}], id="JSON with tabs"),
        pytest.param("{a: 1}", [{"a": 1}], id="YAML that starts like JSON"),
    ],
)
def test_documents(text, expected):
    assert values(text) == expected


def test_a_document_keeps_its_text_with_the_comments():
    text = "# first\na: 1\n---\n# second\nb: 2\n"
    found = manifest_files.documents(text, "job.yaml")
    assert "".join(each.text for each in found) == text


def test_an_error_has_the_line_in_the_file():
    with pytest.raises(InvalidInput, match=r"cannot parse job\.yaml:3:5: "):
        values("a: 1\n---\nb: [")


BOMB = "a0: &a0 [x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 30)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(BOMB, "aliases expand to over 1,000,000 values", id="more than fits anywhere"),
        pytest.param("a: &a {b: *a}", "an alias refers to its own parent", id="without end"),
        pytest.param("[" * 3000 + "]" * 3000, "nested too deeply", id="a deep nesting"),
        pytest.param('{"a":' * 20_000, "nested too deeply", id="JSON that is deep"),
        pytest.param('{"a":' * 201 + "1" + "}" * 201, "nested too deeply", id="rather deep JSON"),
        pytest.param("a: " + "9" * 5000, "does not fit its type", id="an endless number"),
        pytest.param('a: !!int "abc"', "does not fit its type", id="no number"),
        pytest.param('a: !!int ""', "does not fit its type", id="no digits"),
        pytest.param("a: !!bool maybe", "does not fit its type", id="neither true nor false"),
        pytest.param(r'a: "\ud800"', "unpaired surrogate", id="half a character"),
        pytest.param(
            r'{"a": {"\ud800": 1}}', "unpaired surrogate", id="half a character in a name"
        ),
        pytest.param("items: &a [*a]", "an alias refers to", id="a list in itself"),
    ],
)
def test_a_hostile_document_is_refused_at_once(text, message):
    with pytest.raises(InvalidInput, match=message):
        values(text)


def test_aliases_are_fine():
    assert values("a: &a [1]\nb: *a") == [{"a": [1], "b": [1]}]


def test_the_files_of_a_directory(tmp_path):
    (tmp_path / "below").mkdir()
    for name in ("b.yaml", "a.yml", "below/c.json", "notes.txt"):
        (tmp_path / name).write_text("{}")
    found = [path.relative_to(tmp_path) for path in manifest_files.files_in(tmp_path)]
    assert [*map(str, found)] == ["a.yml", "b.yaml", "below/c.json"]


# --- as text


@given(VALUES)
def test_yaml_has_the_same_value(value):
    assert yaml.safe_load(manifest_text.as_yaml(value)) == value


@pytest.mark.parametrize("text", ["1e-3", "0o17", "12", ".5", "y", "N", "yes", "null", "1_0"])
def test_strings_that_kubernetes_would_read_otherwise_are_quoted(text):
    assert manifest_text.as_yaml([text]).strip() in (f'- "{text}"', f"- '{text}'")


def test_equal_parts_are_written_twice_and_texts_are_blocks():
    shared = {"script": "first\nsecond\n"}
    assert manifest_text.as_yaml({"a": shared, "b": shared}) == (
        "a:\n  script: |\n    first\n    second\nb:\n  script: |\n    first\n    second\n"
    )


def test_documents_are_separated_and_keep_their_text():
    documents = [
        Document({"a": 1}, ""),
        Document({"b": 2}, "---\nb: 2  # two\n"),
        Document({"c": 3}, "c: 3\n"),
    ]
    joined = manifest_text.joined(documents, "yaml")
    assert joined == "a: 1\n---\nb: 2  # two\n---\nc: 3\n"


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        pytest.param(1, {"n": 0}, id="one is an object"),
        pytest.param(
            2,
            {"apiVersion": "v1", "kind": "List", "items": [{"n": 0}, {"n": 1}]},
            id="several are a list",
        ),
    ],
)
def test_documents_as_json(count, expected):
    documents = [Document({"n": number}, "") for number in range(count)]
    assert json.loads(manifest_text.joined(documents, "json")) == expected


def test_what_json_cannot_say_is_an_error():
    with pytest.raises(InvalidInput, match="cannot write JSON"):
        manifest_text.joined([Document({"a": b"bytes"}, "")], "json")
