"""Variables and command lines, as Kubernetes expands them."""

import os
import pwd
from base64 import b64encode

import pytest

from mpi_operator.kube.resources import CONFIG_MAPS, SECRETS
from mpi_operator.local.kubelet.config_sources import Missing, Sources
from mpi_operator.local.kubelet.container_env import (
    Tools,
    command_line,
    container_env,
    declared_variables,
    expanded,
    machine_environment,
    main_network,
)
from mpi_operator.local.kubelet.downward_api import UnknownField
from tests.unit.local.kubelet.manifests import make_container, make_pod

OBJECTS = {
    (CONFIG_MAPS, "settings"): {"data": {"COLOUR": "red", "SIZE": "9"}},
    (SECRETS, "keys"): {"data": {"token": b64encode(b"s3cret").decode()}},
}


async def lookup(resource, name):
    return OBJECTS.get((resource, name))


async def variables(env=(), env_from=(), **container):
    pod = make_pod()
    pod["metadata"] |= {"labels": {"app": "pi"}, "annotations": {"note": "hi"}}
    pod["spec"]["nodeName"] = "laptop"
    pod["status"] = {"podIP": "127.77.0.1"}
    spec = make_container(env=list(env), envFrom=list(env_from), **container)
    return await declared_variables(spec, Sources(pod, lookup, {"cpu": "8", "memory": "1000"}))


def from_source(**source):
    return [{"name": "X", "valueFrom": source}]


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("$(A)", "1"),
        ("a$(A)b$(B)", "a1b2"),
        pytest.param("$(C)", "$(C)", id="what is not known stays"),
        pytest.param("$$(A)", "$(A)", id="escaped"),
        pytest.param("$$$(A)", "$1", id="escaped and not"),
        pytest.param("$A ${A} $", "$A ${A} $", id="what a shell would expand stays"),
    ],
)
def test_expansion(text, result):
    assert expanded(text, {"A": "1", "B": "2"}) == result


async def test_a_variable_may_use_earlier_ones():
    env = [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)2"}]
    assert await variables(env) == {"A": "1", "B": "12"}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "p"),
        ("metadata.namespace", "default"),
        ("metadata.uid", "uid-of-p"),
        ("metadata.labels['app']", "pi"),
        ("metadata.annotations['note']", "hi"),
        ("metadata.labels['none']", ""),
        ("spec.nodeName", "laptop"),
        ("status.podIP", "127.77.0.1"),
    ],
)
async def test_fields_of_the_pod(path, value):
    assert await variables(from_source(fieldRef={"fieldPath": path})) == {"X": value}


async def test_an_unknown_field_is_named():
    with pytest.raises(UnknownField, match=r"spec\.surprise"):
        await variables(from_source(fieldRef={"fieldPath": "spec.surprise"}))


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        ({"resource": "limits.cpu"}, "2"),
        ({"resource": "requests.cpu"}, "2"),
        ({"resource": "requests.memory", "divisor": "1Mi"}, "512"),
        pytest.param({"resource": "limits.memory"}, "1000", id="no limit but the machine's"),
    ],
)
async def test_resources(reference, value):
    resources = {"limits": {"cpu": "1500m"}, "requests": {"memory": "512Mi"}}
    env = from_source(resourceFieldRef=reference)
    assert await variables(env, resources=resources) == {"X": value}


async def test_keys_of_objects():
    env = [
        {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "COLOUR"}}},
        {"name": "S", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "token"}}},
    ]
    assert await variables(env) == {"C": "red", "S": "s3cret"}


async def test_whole_objects():
    source = [{"configMapRef": {"name": "settings"}, "prefix": "MY_"}]
    assert await variables(env_from=source) == {"MY_COLOUR": "red", "MY_SIZE": "9"}


@pytest.mark.parametrize("optional", [True, False])
async def test_what_is_missing(optional):
    reference = {"name": "settings", "key": "none", "optional": optional}
    env = from_source(configMapKeyRef=reference)
    if optional:
        assert await variables(env) == {}
    else:
        with pytest.raises(Missing, match="couldn't find key none in ConfigMap settings"):
            await variables(env)


def test_a_command_line_is_expanded():
    container = make_container(command=["mpirun", "-n", "$(N)"], args=["./a", "$$(N)"])
    assert command_line(container, {"N": "4"}) == ["mpirun", "-n", "4", "./a", "$(N)"]


def test_what_belongs_to_another_job_is_not_taken_over():
    mine = {
        "PATH": "/bin",
        "HOME": "/me",
        "OMPI_COMM_WORLD_RANK": "1",
        "PMI_RANK": "0",
        "TMPDIR": "/x",
    }
    assert machine_environment(mine) == {"PATH": "/bin", "HOME": "/me"}


def test_pods_have_a_home_even_if_this_process_has_none(monkeypatch):
    monkeypatch.delenv("HOME", raising=False)
    assert machine_environment({}) == {"HOME": pwd.getpwuid(os.getuid()).pw_dir}


@pytest.fixture
def bin_with(tmp_path):
    """Make a directory of programs with these files."""

    def make(name, *files):
        directory = tmp_path / name / "bin"
        directory.mkdir(parents=True)
        for file in files:
            (directory / file).touch(mode=0o755)
        return directory

    return make


def path_with(tools, path, **variables):
    return container_env({"PATH": path, **variables}, {}, Tools([tools]), {})["PATH"].split(":")


def test_an_mpi_of_the_system_does_not_hide_the_python_of_an_environment(bin_with):
    venv, system = bin_with("venv", "python"), bin_with("system", "python", "mpirun")
    path = path_with(system, f"{venv}:{system}")
    assert path == ["/.pod/bin", str(venv), str(system)]


def test_an_mpi_that_another_one_hides_comes_first(bin_with):
    other, wanted = bin_with("other", "mpirun"), bin_with("wanted", "mpirun")
    assert path_with(wanted, f"{other}:{wanted}") == ["/.pod/bin", str(wanted), str(other)]


def test_an_active_environment_stays_before_an_mpi_from_elsewhere(bin_with):
    venv, ours = bin_with("venv", "python"), bin_with("ours", "python", "mpirun")
    path = path_with(ours, f"{venv}:/bin", VIRTUAL_ENV=str(venv.parent))
    assert path == ["/.pod/bin", str(venv), str(ours), "/bin"]


def test_tools_come_before_the_machine(tmp_path):
    tools = Tools([tmp_path], {"LD_LIBRARY_PATH": "/mpi/lib"})
    env = container_env({"PATH": "/bin", "LD_LIBRARY_PATH": "/own"}, {"A": "1"}, tools, {})
    assert env["PATH"] == f"/.pod/bin:{tmp_path}:/bin"
    assert env["LD_LIBRARY_PATH"] == "/mpi/lib:/own"
    assert env["A"] == "1"


def test_what_a_container_declares_wins_but_for_what_it_could_not_work_without():
    own = {"LANG": "de", "HYDRA_LAUNCHER": "rsh", "TMPDIR": "/mine"}
    env = container_env({"LANG": "en", "PATH": "/bin"}, own, Tools(), {})
    assert (env["LANG"], env["TMPDIR"]) == ("de", "/mine")
    assert env["HYDRA_LAUNCHER"] == "ssh"


ROUTES = """\
Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
wlan0	00000000	0100A8C0	0003	0	0	600	00000000	0	0	0
eth0	00000000	0100A8C0	0003	0	0	100	00000000	0	0	0
docker0	000011AC	00000000	0001	0	0	0	0000FFFF	0	0	0
"""


@pytest.mark.parametrize(
    ("routes", "interface"),
    [(ROUTES, "eth0"), (ROUTES.splitlines()[0], ""), ("", "")],
    ids=["the one with the lowest metric", "none has a default route", "no network at all"],
)
def test_the_main_network_has_the_default_route(tmp_path, routes, interface):
    (tmp_path / "route").write_text(routes)
    assert main_network(tmp_path / "route") == interface


def test_a_machine_without_a_table_of_routes_has_no_main_network(tmp_path):
    assert main_network(tmp_path / "route") == ""


def test_ranks_meet_on_loopback_unless_their_container_says_where():
    assert container_env({"FI_TCP_IFACE": "eth0"}, {}, Tools(), {})["FI_TCP_IFACE"] == "lo"
    own = {"FI_TCP_IFACE": "eth0"}
    assert container_env({}, own, Tools(), {})["FI_TCP_IFACE"] == "eth0"
