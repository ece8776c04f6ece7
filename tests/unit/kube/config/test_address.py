"""Proxies from the environment, by Go's rules."""

import pytest

from mpi_operator.kube.config import ConfigError
from mpi_operator.kube.config.address import is_direct, proxy_from_environment


@pytest.mark.parametrize(
    ("server", "environ", "proxy"),
    [
        pytest.param("https://c", {}, None, id="none"),
        pytest.param("https://c", {"HTTPS_PROXY": "http://p:1"}, "http://p:1", id="for https"),
        pytest.param("https://c", {"https_proxy": "p:1"}, "http://p:1", id="lower case, no scheme"),
        pytest.param("https://c", {"HTTP_PROXY": "http://p"}, None, id="only for http"),
        pytest.param("http://c", {"HTTP_PROXY": "http://p"}, "http://p", id="for http"),
        pytest.param("https://c", {"ALL_PROXY": "http://p"}, None, id="Go knows no ALL_PROXY"),
        pytest.param("https://c", {"HTTPS_PROXY": "p", "no_proxy": "c"}, None, id="kept out"),
        pytest.param("https://127.0.0.1:6443", {"HTTPS_PROXY": "p"}, None, id="this machine"),
    ],
)
def test_the_proxy_of_the_environment(server, environ, proxy):
    assert proxy_from_environment(server, environ) == proxy


@pytest.mark.parametrize(
    ("host", "rules", "direct"),
    [
        ("localhost", "", True),
        ("::1", "", True),
        ("a.example", "", False),
        ("a.example", "*", True),
        ("a.example", "x, example", True),
        ("example", "example", True),
        ("badexample", "example", False),
        ("a.example", ".example", True),
        ("example", ".example", False),
        ("a.example", "*.example", True),
        ("A.Example", "a.EXAMPLE:443", True),
        ("a.example", "a.example:80", False),
        ("10.1.2.3", "10.0.0.0/8", True),
        ("11.1.2.3", "10.0.0.0/8", False),
        ("10.1.2.3", "10.1.2.3", True),
        ("10.1.2.3", "10.1.2.3:443", True),
        ("10.1.2.3", "2.3", False),
        ("fd00::1", "fd00::/16", True),
        ("fd00::1", "[fd00::1]:443", True),
        ("fd00::1", "fd00::1", True),
        ("10.1.2.3", "nonsense/8", False),
    ],
)
def test_whom_no_proxy_keeps_out(host, rules, direct):
    assert is_direct(host, 443, rules) is direct


@pytest.mark.parametrize("proxy", ["socks5://p:1", "socks5h://me:hunter2@p:1", "http://"])
def test_unusable_proxies_are_explained(proxy):
    with pytest.raises(ConfigError, match="environment variable HTTPS_PROXY") as caught:
        proxy_from_environment("https://c", {"HTTPS_PROXY": proxy})
    assert "hunter2" not in str(caught.value)
