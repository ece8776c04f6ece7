"""What the pods of a job need, and what of it is missing."""

from pathlib import Path

import pytest

from mpi_operator.api.decode import decode_job
from mpi_operator.cli.command_errors import InvalidInput
from mpi_operator.cli.job_input import references
from tests.support.mpijobs import mpijob

CONFIG = {"kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}}
SECRET = {"kind": "Secret", "metadata": {"name": "s"}, "stringData": {"b": "hunter2"}}


def job(*, env=(), env_from=(), volumes=(), init=()):
    """A job whose launcher has these references."""
    container = {"name": "mpi", "image": "i", "env": [*env], "envFrom": [*env_from]}
    spec = {"containers": [container], "volumes": [*volumes], "initContainers": [*init]}
    return decode_job(mpijob("pi", launcher={"template": {"spec": spec}}))


def variable(source, **reference):
    return {"name": "V", "valueFrom": {source: reference}}


def volume(**source):
    return {"name": "v", **source}


MISSING = [
    pytest.param(
        {"env": [variable("configMapKeyRef", name="n", key="a")]}, "ConfigMap n", id="variable"
    ),
    pytest.param(
        {"env": [variable("secretKeyRef", name="n", key="a")]}, "Secret n", id="secret variable"
    ),
    pytest.param({"env_from": [{"configMapRef": {"name": "n"}}]}, "ConfigMap n", id="envFrom"),
    pytest.param({"env_from": [{"secretRef": {"name": "n"}}]}, "Secret n", id="envFrom, secret"),
    pytest.param({"volumes": [volume(configMap={"name": "n"})]}, "ConfigMap n", id="volume"),
    pytest.param({"volumes": [volume(secret={"secretName": "n"})]}, "Secret n", id="secret volume"),
    pytest.param(
        {"volumes": [volume(projected={"sources": [{"secret": {"name": "n"}}]})]},
        "Secret n",
        id="projected",
    ),
    pytest.param(
        {"volumes": [volume(persistentVolumeClaim={"claimName": "n"})]},
        "PersistentVolumeClaim n",
        id="claim",
    ),
    pytest.param(
        {
            "init": [
                {"name": "i", "image": "i", "env": [variable("secretKeyRef", name="n", key="a")]}
            ]
        },
        "Secret n",
        id="init container",
    ),
]


@pytest.mark.parametrize(("needs", "named"), MISSING)
def test_what_does_not_exist_is_missing(needs, named):
    [found] = references.missing(job(**needs), [CONFIG, SECRET])
    assert str(found) == f"pi launcher: {named} does not exist"


def test_keys_count_and_values_are_never_shown():
    needs = {
        "env": [variable("configMapKeyRef", name="c", key="z")],
        "volumes": [volume(secret={"secretName": "s", "items": [{"key": "y", "path": "p"}]})],
    }
    found = references.missing(job(**needs), [CONFIG, SECRET])
    assert [*map(str, found)] == [
        "pi launcher: ConfigMap c has no key z; it has a",
        "pi launcher: Secret s has no key y; it has b",
    ]
    assert [each.option for each in found] == ["--configmap c:z=FILE", "--secret-file s:y=FILE"]


@pytest.mark.parametrize(
    "needs",
    [
        {"env": [variable("configMapKeyRef", name="c", key="a")]},
        {"env": [variable("secretKeyRef", name="n", key="a", optional=True)]},
        {"env_from": [{"secretRef": {"name": "n", "optional": True}}]},
        {"volumes": [volume(configMap={"name": "n", "optional": True})]},
        {
            "volumes": [
                volume(projected={"sources": [{"configMap": {"name": "n", "optional": True}}]})
            ]
        },
        {"volumes": [volume(configMap={"name": "pi-config"})]},
        {"volumes": [volume(emptyDir={})]},
    ],
    ids=[
        *("exists", "optional variable", "optional envFrom", "optional volume"),
        *("optional projection", "the operator's own", "no object"),
    ],
)
def test_what_exists_or_is_optional_is_not_missing(needs):
    assert references.missing(job(**needs), [CONFIG, SECRET]) == []


@pytest.mark.parametrize(("path", "name"), [("job.yaml", "job.yaml"), ("-", "standard input")])
def test_the_error_has_the_options_that_help(path, name):
    needs = {"env_from": [{"secretRef": {"name": "n"}}, {"configMapRef": {"name": "m"}}]}
    with pytest.raises(InvalidInput) as raised:
        references.check([job(**needs)], [], Path(path))
    assert str(raised.value) == (
        f"missing in {name}:\n"
        "  pi launcher: Secret n does not exist\n"
        "  pi launcher: ConfigMap m does not exist"
    )
    assert raised.value.command == (
        f"mpijob run {path} --secret-file n=PATH --configmap m=DIR  # provides it"
    )
