"""Flags: their values, invalid ones, and those without effect."""

from pathlib import Path

import pytest

from mpi_operator.operator.log_format import Format, Level
from mpi_operator.operator.options import (
    FLAGS,
    IGNORED,
    Options,
    ResourceType,
    Switch,
    parse,
    reasons,
)


def parsed(*arguments: str, **variables: str) -> Options:
    return parse(arguments, environ=variables, is_terminal=False)


def test_defaults():
    assert parsed() == Options()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(["--namespace", "a"], {"namespaces": ("a",)}, id="a value"),
        pytest.param(["--namespace=a"], {"namespaces": ("a",)}, id="a value after ="),
        pytest.param(["-namespace", "a"], {"namespaces": ("a",)}, id="one dash"),
        pytest.param(["-namespace=a"], {"namespaces": ("a",)}, id="one dash, a value after ="),
        pytest.param(["--namespace", "a,b"], {"namespaces": ("a", "b")}, id="several by comma"),
        pytest.param(
            ["--namespace=a, b", "--namespace=c,a"],
            {"namespaces": ("a", "b", "c")},
            id="several times, each once",
        ),
        pytest.param(["--namespace="], {"namespaces": ("",)}, id="no namespace is all of them"),
        pytest.param(["--kubeConfig=/x"], {"kubeconfig": Path("/x")}, id="as in Go"),
        pytest.param(["--kubeconfig=/x"], {"kubeconfig": Path("/x")}, id="as everywhere else"),
        pytest.param(["--kubeConfig="], {"kubeconfig": None}, id="no kubeconfig"),
        pytest.param(["--master=https://h:1/"], {"master": "https://h:1"}, id="an address"),
        pytest.param(["--master="], {"master": ""}, id="no address"),
        pytest.param(["--lock-namespace=kubeflow"], {"lock_namespace": "kubeflow"}, id="lock"),
        pytest.param(["--gang-scheduling=volcano"], {"gang_scheduler": "volcano"}, id="gang"),
        pytest.param(["--gang-scheduling="], {"gang_scheduler": ""}, id="no gang"),
        pytest.param(["--cluster-domain=a.b"], {"cluster_domain": "a.b"}, id="domain"),
        pytest.param(["--threadiness", "2"], {"threadiness": 2}, id="threadiness"),
        pytest.param(["--threadiness=2", "--threadiness=3"], {"threadiness": 3}, id="the last"),
        pytest.param(["--write-concurrency=9"], {"write_concurrency": 9}, id="writes"),
        pytest.param(["--health-port=0"], {"health_port": 0}, id="no health port"),
        pytest.param(["--monitoring-port=9"], {"monitoring_port": 9}, id="monitoring port"),
        pytest.param(["--webhooks=off"], {"webhooks": Switch.OFF}, id="no webhooks"),
        pytest.param(["--webhook-port=1"], {"webhook_port": 1}, id="webhook port"),
        pytest.param(["--webhook-service=a"], {"webhook_service": "a"}, id="webhook service"),
        pytest.param(["--webhook-cert-dir=/x"], {"webhook_cert_dir": Path("/x")}, id="files"),
        pytest.param(["--gpus-per-node", "8"], {"gpus_per_node": 8}, id="GPUs per node"),
        pytest.param(
            ["--processing-units-per-node=8"], {"processing_units_per_node": 8}, id="units"
        ),
        pytest.param(
            ["--processing-resource-type=cpu"],
            {"processing_resource_type": ResourceType.CPU},
            id="type of units",
        ),
        pytest.param(
            ["--kubectl-delivery-image=a:1"], {"kubectl_delivery_image": "a:1"}, id="an image"
        ),
        pytest.param(
            ["--mpi-kubectl-delivery-image=a"], {"kubectl_delivery_image": "a"}, id="older name"
        ),
        pytest.param(["--log-level=debug"], {"log_level": Level.DEBUG}, id="level"),
        pytest.param(["--log-format=text"], {"log_format": Format.TEXT}, id="format"),
    ],
)
def test_what_flags_mean(arguments, expected):
    assert parsed(*arguments) == Options(**expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            ["--namespace=A"], "--namespace: 'A' is not a valid namespace", id="namespace"
        ),
        pytest.param(["--namespace=a,b_c"], "'b_c' is not a valid namespace", id="one of two"),
        pytest.param(["--lock-namespace="], "'' is not a valid namespace", id="no lock namespace"),
        pytest.param(
            ["--cluster-domain=.local"], "'.local' is not a valid DNS name", id="a dot first"
        ),
        pytest.param(
            ["--cluster-domain=local."], "'local.' is not a valid DNS name", id="a dot last"
        ),
        pytest.param(["--cluster-domain=a b"], "'a b' is not a valid DNS name", id="a space"),
        pytest.param(
            ["--cluster-domain=" + "a." * 130 + "a"], "is not a valid DNS name", id="too long"
        ),
        pytest.param(["--gang-scheduling=Vol cano"], "not a valid scheduler name", id="scheduler"),
        pytest.param(["--threadiness=0"], "from 1 to 1000, got '0'", id="zero"),
        pytest.param(["--threadiness=x"], "from 1 to 1000, got 'x'", id="no number"),
        pytest.param(["--threadiness=\u0663"], "an integer", id="a digit that is not ours"),
        pytest.param(["--health-port=65536"], "from 0 to 65535", id="no port"),
        pytest.param(["--health-port", "-1"], "from 0 to 65535, got '-1'", id="below zero"),
        pytest.param(["--master=ftp://h"], "--master: ", id="no HTTP"),
        pytest.param(["--master=https://u:pass@h"], "--master: ", id="a password"),
        pytest.param(["--webhooks=maybe"], "expected one of on, off", id="switch"),
        pytest.param(["--webhook-port=0"], "from 1 to 65535", id="no webhook port"),
        pytest.param(["--webhook-service=A.b"], "not a valid Service name", id="service"),
        pytest.param(["--kubectl-delivery-image="], "not a valid image name", id="no image"),
        pytest.param(
            ["--processing-resource-type=amd.com/gpu"], "one of nvidia.com/gpu, cpu", id="units"
        ),
        pytest.param(["--log-level=loud"], "expected one of debug, info", id="level"),
        pytest.param(["--log-format=xml"], "expected one of json, text", id="format"),
        pytest.param(["--kubeConfig"], "expected one argument", id="no value"),
        pytest.param(["--name=a"], "unrecognized arguments: --name=a", id="no abbreviations"),
        pytest.param(["job.yaml"], "unrecognized arguments: job.yaml", id="no arguments"),
    ],
)
def test_invalid_values(arguments, message, capsys):
    with pytest.raises(SystemExit) as raised:
        parsed(*arguments)
    assert raised.value.code == 2
    err = capsys.readouterr().err
    assert message in err
    assert "pass@" not in err


def test_a_variable_names_the_namespace():
    assert parsed(KUBEFLOW_NAMESPACE="a").namespaces == ("a",)


def test_a_flag_beats_the_variable():
    assert parsed("--namespace=b", KUBEFLOW_NAMESPACE="a").namespaces == ("b",)
    assert parsed("--namespace=", KUBEFLOW_NAMESPACE="a").namespaces == ("",)


def test_the_error_about_the_variable_names_it(capsys):
    with pytest.raises(SystemExit) as raised:
        parsed(KUBEFLOW_NAMESPACE="A")
    assert raised.value.code == 2
    assert "variable KUBEFLOW_NAMESPACE: 'A'" in capsys.readouterr().err


def test_the_format_on_a_terminal_is_text():
    assert parse([], environ={}, is_terminal=True).log_format is Format.TEXT


def test_the_arguments_of_the_go_operators_deployment_are_accepted():
    options = parsed("-alsologtostderr", "--lock-namespace", "mpi-operator")
    assert options == Options(without_effect=("--alsologtostderr",))


@pytest.mark.parametrize("ignored", IGNORED, ids=lambda each: each.name)
def test_flags_without_effect_are_accepted_and_named(ignored):
    options = parsed(f"{ignored.name}=1", "--threadiness=3")
    assert options == Options(threadiness=3, without_effect=(ignored.name,))
    assert reasons(options.without_effect) == {ignored.name: ignored.why}


def test_a_switch_takes_no_value_that_is_not_its_own():
    options = parsed("-logtostderr", "-v", "4", "--threadiness", "3", "-v=5")
    assert options == Options(threadiness=3, without_effect=("--logtostderr", "--v"))


def test_help_covers_everything(capsys):
    with pytest.raises(SystemExit) as raised:
        parsed("-h")
    assert raised.value.code == 0
    out = capsys.readouterr().out
    assert all(flag.name in out for flag in FLAGS)
    assert "examples:" in out
    assert "exit codes:" in out
    assert max(map(len, out.splitlines())) <= 100


def test_the_version_has_what_a_bug_report_needs(capsys):
    with pytest.raises(SystemExit) as raised:
        parsed("-version")
    assert raised.value.code == 0
    out = capsys.readouterr().out
    assert out.startswith("mpi-operator ")
    assert "kubeflow.org/v2beta1" in out


@pytest.mark.parametrize("flag", FLAGS, ids=lambda flag: flag.name)
def test_the_table_names_real_fields_and_their_defaults(flag):
    default = getattr(Options(), flag.field)
    assert flag.default == str(default) or not flag.default.isdecimal()
