"""Reading, merging and selecting: kubectl's rules."""

from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpi_operator.kube.config import ConfigError, from_kubeconfig
from mpi_operator.kube.config.kubeconfig import Kubeconfig, merged, read_kubeconfig
from tests.unit.kube.config.factories import make_kubeconfig, write

SECRET = "s3cr3t-t0k3n"

# One directory serves all examples, which overwrite their files; and disks have slow moments.
files_in_every_example = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def cluster(name: str, server: str) -> dict[str, Any]:
    return {"name": name, "cluster": {"server": server}}


def context(name: str, cluster: str) -> dict[str, Any]:
    return {"name": name, "context": {"cluster": cluster}}


def test_of_two_files_the_first_to_define_a_name_wins_whole(tmp_path):
    first = write(
        tmp_path / "a",
        {"clusters": [cluster("c", "https://a")], "contexts": [context("x", "c")]},
    )
    second = write(
        tmp_path / "b",
        {
            "current-context": "x",
            "clusters": [
                {"name": "c", "cluster": {"server": "https://b", "tls-server-name": "b"}},
                cluster("d", "https://d"),
            ],
            "contexts": [context("x", "d")],
        },
    )
    result = merged(map(read_kubeconfig, (first, second)))
    assert result.current_context == "x"
    assert result.clusters["c"].value.server == "https://a"
    assert result.clusters["c"].value.tls_server_name is None
    assert result.clusters["d"].file == second
    assert result.contexts["x"].value.cluster == "c"


def test_an_empty_current_context_is_not_set(tmp_path):
    first = write(tmp_path / "a", {"current-context": ""})
    second = write(tmp_path / "b", {"current-context": "x"})
    assert merged(map(read_kubeconfig, (first, second))).current_context == "x"


names = st.sampled_from("abc")
clusters: st.SearchStrategy[dict[str, Any]] = st.builds(
    cluster, names, st.sampled_from(["https://1", "https://2"])
)
contexts: st.SearchStrategy[dict[str, Any]] = st.builds(context, names, names)
one_of_each_cluster = st.lists(clusters, unique_by=itemgetter("name"))
one_of_each_context = st.lists(contexts, unique_by=itemgetter("name"))
documents = st.fixed_dictionaries(
    {
        "current-context": st.sampled_from(["", "a", "b"]),
        "clusters": one_of_each_cluster,
        "contexts": one_of_each_context,
    }
)


def read_all(directory: Path, contents: list[dict[str, Any]]) -> list[Kubeconfig]:
    return [
        read_kubeconfig(write(directory / str(i), content)) for i, content in enumerate(contents)
    ]


@settings(files_in_every_example, max_examples=60)
@given(st.lists(documents, min_size=1, max_size=4))
def test_merging_keeps_the_first_of_every_name(tmp_path, contents):
    parts = read_all(tmp_path, contents)
    result = merged(parts)
    for name in "abc":
        having = [part.clusters[name] for part in parts if name in part.clusters]
        assert result.clusters.get(name) == (having[0] if having else None)
    set_contexts = [part.current_context for part in parts if part.current_context]
    assert result.current_context == (set_contexts[0] if set_contexts else None)


@settings(files_in_every_example, max_examples=60)
@given(st.lists(documents, min_size=3, max_size=3))
def test_merging_in_steps_is_merging_at_once(tmp_path, contents):
    first, second, third = read_all(tmp_path, contents)
    at_once = merged([first, second, third])
    assert merged([merged([first, second]), third]) == at_once
    assert merged([first, merged([second, third])]) == at_once


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param("a: [", "not valid YAML at line 1, column 5", id="broken YAML"),
        pytest.param(f"token: *{SECRET}", "not valid YAML at line 1", id="an unknown alias"),
        pytest.param("x: !!bool maybe", "not valid YAML", id="a tag that makes PyYAML stumble"),
        pytest.param("x: " + "9" * 5000, "not valid YAML", id="a number with 5000 digits"),
        pytest.param("[" * 5000, "not valid YAML", id="nesting without end"),
        pytest.param("- a", "Expected `object`, got `array`", id="a list"),
        pytest.param("5", "Expected `object`, got `int`", id="a number"),
        pytest.param(
            make_kubeconfig(cluster={"server": 5}),
            "got `int` - at `$.clusters[0].cluster.server`",
            id="a server that is a number",
        ),
        pytest.param(
            make_kubeconfig(user={"token": True}),
            "got `bool` - at `$.users[0].user.token`",
            id="a token that YAML takes for a bool",
        ),
        pytest.param({"clusters": {}}, "at `$.clusters`", id="clusters that are no list"),
        pytest.param(
            {"clusters": [cluster("c", "https://1"), cluster("c", "https://2")]},
            'cluster "c": defined twice',
            id="a name that is defined twice",
        ),
        pytest.param({"apiVersion": "v1", "kind": "Pod"}, "kind Config", id="another kind of file"),
        pytest.param(make_kubeconfig(**{"current-context": ""}), "no current-context", id="none"),
        pytest.param(
            make_kubeconfig(**{"current-context": "prod"}),
            'context "prod" not found; there are: dev',
            id="a current-context that does not exist",
        ),
        pytest.param(
            make_kubeconfig(context={"cluster": "x"}),
            'context "dev": cluster "x" not found; there are: c',
            id="a context whose cluster does not exist",
        ),
        pytest.param(
            make_kubeconfig(context={"user": "x"}),
            'context "dev": user "x" not found; there are: u',
            id="a context whose user does not exist",
        ),
        pytest.param(make_kubeconfig(context={"cluster": ""}), "no cluster", id="no cluster"),
        pytest.param(
            make_kubeconfig(context={"namespace": "../x"}), "not a DNS label", id="a bad namespace"
        ),
        pytest.param(make_kubeconfig(cluster={"server": ""}), "server is missing", id="no server"),
        pytest.param(
            make_kubeconfig(cluster={"server": "c:6443"}), "expected https://", id="no scheme"
        ),
        pytest.param(
            make_kubeconfig(cluster={"server": "https://c:99999"}),
            "not an address",
            id="a bad port",
        ),
        pytest.param(
            make_kubeconfig(cluster={"server": f"https://u:{SECRET}@c"}),
            "must not contain a name or password",
            id="a password in the server",
        ),
        pytest.param("", "no Kubernetes configuration found", id="an empty file"),
    ],
)
def test_mistakes_are_explained(tmp_path, content, message):
    path = write(tmp_path / "config", content)
    with pytest.raises(ConfigError) as caught:
        from_kubeconfig(path)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_file_asked_for_must_exist(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot read .*/nowhere: No such file"):
        from_kubeconfig(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(make_kubeconfig(preferences={"colors": True}, extra=[1]), id="unknown fields"),
        pytest.param(make_kubeconfig(user=None), id="a user with nothing"),
        pytest.param(
            make_kubeconfig(users=[{"name": "u", "user": None}]), id="a user that is null"
        ),
        pytest.param(make_kubeconfig(context={"user": None}), id="no user"),
        pytest.param(
            yaml.safe_dump(make_kubeconfig()) + "---\n5\n", id="only the first document counts"
        ),
    ],
)
async def test_what_kubectl_tolerates_is_tolerated(tmp_path, content):
    config = from_kubeconfig(write(tmp_path / "config", content))
    assert (config.server, config.namespace) == ("https://c:6443", "default")
    assert (await config.credentials.current()).headers == ()


def test_a_name_that_looks_like_a_date_is_a_name(tmp_path):
    content = make_kubeconfig()
    content["contexts"][0]["name"] = "THE-DATE"
    text = yaml.safe_dump(content | {"current-context": "THE-DATE"})
    path = write(tmp_path / "config", text.replace("THE-DATE", "2026-01-31"))
    assert from_kubeconfig(path, context="2026-01-31").server == "https://c:6443"


def test_context_cluster_and_user_can_be_chosen(tmp_path):
    content = make_kubeconfig()
    content["clusters"].append(cluster("other", "https://other/prefix/"))
    content["contexts"].append(
        {"name": "prod", "context": {"cluster": "other", "user": "u", "namespace": "n"}}
    )
    path = write(tmp_path / "config", content)
    assert from_kubeconfig(path, context="prod").server == "https://other/prefix"
    assert from_kubeconfig(path, context="prod").namespace == "n"
    assert from_kubeconfig(path, cluster="other").server == "https://other/prefix"
    with pytest.raises(ConfigError, match='user "x" not found'):
        from_kubeconfig(path, user="x")


def test_a_chosen_cluster_needs_no_context(tmp_path):
    path = write(tmp_path / "config", {"clusters": [cluster("c", "https://c")]})
    assert from_kubeconfig(path, cluster="c").server == "https://c"


def test_entries_print_no_secrets(tmp_path):
    user = {"token": SECRET, "exec": {"args": [SECRET], "env": [{"name": "A", "value": SECRET}]}}
    path = write(tmp_path / "config", make_kubeconfig(user=user))
    result = read_kubeconfig(path)
    assert SECRET not in repr(result)
    assert SECRET not in repr(result.users["u"].value.exec)


yaml_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just("https://c"),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


def with_one_changed(content: Any, path: tuple[Any, ...], value: Any) -> Any:
    """The kubeconfig with something strange in one place."""
    *parents, last = path
    target = content
    for key in parents:
        target = target[key]
    target[last] = value
    return content


USER_FIELDS = (
    "token tokenFile username as as-groups as-user-extra exec "
    "client-certificate client-certificate-data auth-provider"
)
CLUSTER_FIELDS = (
    "server certificate-authority certificate-authority-data proxy-url tls-server-name extensions"
)

places = st.one_of(
    st.sampled_from([("users", 0, "user", name) for name in USER_FIELDS.split()]),
    st.sampled_from([("clusters", 0, "cluster", name) for name in CLUSTER_FIELDS.split()]),
    st.sampled_from(
        [
            ("clusters",),
            ("users", 0),
            ("contexts", 0, "context", "namespace"),
            ("contexts", 0, "context", "cluster"),
            ("current-context",),
        ]
    ),
)


@settings(files_in_every_example, max_examples=300)
@given(places, yaml_values)
def test_a_strange_value_anywhere_is_taken_or_explained(tmp_path, place, value):
    content = with_one_changed(make_kubeconfig(), place, value)
    path = write(tmp_path / "config", yaml.safe_dump(content, allow_unicode=False))
    try:
        assert from_kubeconfig(path).server.startswith(("https://", "http://"))
    except ConfigError as error:
        assert str(error)  # noqa: PT017


@settings(files_in_every_example, max_examples=200)
@given(st.binary(max_size=60) | st.text("-:[]{}&*!|>'\"#%@\\ \n?axy0~.", max_size=40))
def test_any_bytes_are_taken_or_explained(tmp_path, content):
    path = tmp_path / "config"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigError):
        from_kubeconfig(path)
