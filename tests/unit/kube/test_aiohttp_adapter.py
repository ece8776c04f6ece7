"""aiohttp may move what it does not document: these tests say what moved."""

import inspect
import re
import tomllib
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage

from mpi_operator.kube import aiohttp_adapter

ROOT = Path(__file__).parents[3]


CLIENT, SERVER = "kube/aiohttp_adapter.py", "webhook/connections.py"
HANDLER = {
    *("manager", "loop", "access_log", "keepalive_timeout", "lingering_time"),
    *("auto_decompress", "max_field_size", "max_line_size"),
}


def moved(what, module=CLIENT):
    return (
        f"aiohttp {aiohttp.__version__} moved {what}: adapt src/mpi_operator/{module}, and the "
        f"range in {CLIENT} and in pyproject.toml"
    )


@pytest.mark.parametrize(
    ("function", "arguments", "module"),
    [
        (aiohttp.ClientRequest, {"method", "url", "loop", "ssl", "server_hostname"}, CLIENT),
        (aiohttp.BaseConnector.connect, {"req", "traces", "timeout"}, CLIENT),
        (ResponseHandler.set_response_params, {"read_until_eof", "read_bufsize"}, CLIENT),
        (ResponseHandler.read, set(), CLIENT),
        (Connection.close, set(), CLIENT),
        (Connection.release, set(), CLIENT),
        (web.RequestHandler, HANDLER, SERVER),
        (web.RequestHandler.connection_made, {"transport"}, SERVER),
        (web.RequestHandler.data_received, {"data"}, SERVER),
        (web.RequestHandler.connection_lost, {"exc"}, SERVER),
        (web.RequestHandler.force_close, set(), SERVER),
    ],
    ids=lambda each: getattr(each, "__qualname__", ""),
)
def test_the_calls_that_we_make_exist(function, arguments, module):
    parameters = inspect.signature(function).parameters
    call = f"{function.__qualname__}{tuple(arguments)}"
    assert arguments <= set(parameters), moved(call, module)
    others = [
        each.name
        for each in parameters.values()
        if each.default is each.empty and each.name not in arguments | {"self"}
    ]
    assert not others, moved(f"{function.__qualname__}, which now needs {others}", module)


def test_a_server_logs_the_exceptions_of_a_connection_where_we_replace_it():
    parameters = inspect.signature(web.RequestHandler.log_exception).parameters
    assert [each.kind for each in parameters.values()][1:] == [
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.VAR_KEYWORD,
    ], moved("RequestHandler.log_exception", SERVER)


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (Connection, "protocol"),
        (Connection, "transport"),
        (RawResponseMessage, "code"),
        (RawResponseMessage, "headers"),
        (aiohttp.ClientSession, "connector"),
        (aiohttp.ClientConnectorError, "os_error"),
        (aiohttp.ClientConnectorCertificateError, "certificate_error"),
    ],
)
def test_the_attributes_that_we_read_exist(owner, name):
    assert hasattr(owner, name), moved(f"{owner.__name__}.{name}")


def test_the_cause_of_an_untrusted_certificate_is_known():
    key = ConnectionKey("localhost", 443, True, True, None, None, None)
    below = OSError("self-signed")
    error = aiohttp.ClientConnectorCertificateError(key, below)
    assert aiohttp_adapter.cause(error) is below, moved("ClientConnectorCertificateError")


def test_the_declared_range_is_the_tested_range():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"aiohttp{aiohttp_adapter.RANGE}" in project["dependencies"]
    first, last = aiohttp_adapter.VERSIONS[0], aiohttp_adapter.VERSIONS[-1]
    major, minor = last.split(".")
    assert f">={first},<{major}.{int(minor) + 1}" == aiohttp_adapter.RANGE


def test_the_installed_version_is_a_tested_one():
    installed = aiohttp.__version__.rpartition(".")[0]
    assert installed in aiohttp_adapter.VERSIONS, (
        f"aiohttp {aiohttp.__version__} is outside of the tested range {aiohttp_adapter.RANGE}: "
        "add it to VERSIONS in aiohttp_adapter.py and run `make test-aiohttp`"
    )


def test_no_other_module_uses_internals_of_aiohttp():
    internals = re.compile(
        r"aiohttp\.(_|client\b|client_|connector\b|http\b|http_|helpers\b)|set_response_params"
        r"|ClientRequest\(|\.connector\b|RequestHandler\b"
    )
    using = {
        file.name
        for file in (ROOT / "src").rglob("*.py")
        if "aiohttp" in (text := file.read_text()) and internals.search(text)
    }
    assert using == {"aiohttp_adapter.py", "connections.py"}
