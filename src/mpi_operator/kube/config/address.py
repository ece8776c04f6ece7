"""Addresses: of the API server, with the namespace to use there, and of the proxy on the way.

The rules for proxies in the environment are those of Go's `golang.org/x/net/http/httpproxy`, and so
those of kubectl. urllib ignores networks in NO_PROXY, and `10.96.0.0/12` is how people keep
requests to the API server off the proxy.
"""

import re
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit, urlunsplit

from mpi_operator.kube.errors import ConfigError

_Address = IPv4Address | IPv6Address
_PORTS = {"http": 80, "https": 443}
_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def parse_server(text: str, where: str) -> str:
    """The address without a trailing slash, query or fragment. Errors never quote a password."""
    parts = split_url(text, where)
    if parts.scheme not in ("http", "https"):
        raise ConfigError(f"{where}: expected https://HOST[:PORT] or http://HOST[:PORT]")
    if parts.username is not None or parts.password is not None:
        raise ConfigError(f"{where}: must not contain a name or password; put it under `users`")
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))


def parse_namespace(text: str, where: str) -> str:
    """A namespace whose name is safe in a path."""
    if not _DNS_LABEL.fullmatch(text):
        raise ConfigError(
            f"{where}: namespace {text!r} is not a DNS label (a-z, 0-9 and -, at most 63)"
        )
    return text


def split_url(text: str, where: str) -> SplitResult:
    """The parts of an address; ConfigError without a host or with an impossible port."""
    try:
        parts = urlsplit(text)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        has_host = False
    if not has_host or not text.isascii() or not text.isprintable() or " " in text:
        raise ConfigError(
            f"{where}: not an address; expected https://HOST[:PORT] or http://HOST[:PORT]"
        )
    return parts


def parse_proxy(text: str, where: str) -> str:
    """A proxy that an HTTP client can use. Errors never quote a password."""
    scheme = split_url(text, where).scheme
    if scheme.startswith("socks"):
        raise ConfigError(
            f"{where}: SOCKS proxies are not supported; use an http:// or https:// proxy"
        )
    if scheme not in ("http", "https"):
        raise ConfigError(f"{where}: expected http://HOST[:PORT] or https://HOST[:PORT]")
    return text


def proxy_from_environment(server: str, environ: Mapping[str, str]) -> str | None:
    """The proxy that the environment names for this server."""
    parts = urlsplit(server)
    name, proxy = _first(environ, f"{parts.scheme.upper()}_PROXY")
    host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
    if not proxy or is_direct(host, port, _first(environ, "NO_PROXY")[1]):
        return None
    with_scheme = proxy if "://" in proxy else f"http://{proxy}"
    return parse_proxy(with_scheme, f"environment variable {name}")


def is_direct(host: str, port: int, no_proxy: str) -> bool:
    """Whether requests to a host bypass the proxy. Those to this machine always do."""
    host, address = host.lower().rstrip("."), _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    return any(_matches(rule.strip().lower(), host, port, address) for rule in no_proxy.split(","))


def _first(environ: Mapping[str, str], name: str) -> tuple[str, str]:
    """The variable under its upper-case name, else under its lower-case one."""
    return next(((n, environ[n]) for n in (name, name.lower()) if environ.get(n)), (name, ""))


def _matches(rule: str, host: str, port: int, address: _Address | None) -> bool:
    if rule == "*":
        return True
    if "/" in rule:
        return address is not None and _in_network(address, rule)
    name, wanted = _without_port(rule)
    if not name or wanted not in ("", str(port)):
        return False
    if address is not None:
        return _address(name) == address
    return _in_domain(host, name)


def _in_domain(host: str, name: str) -> bool:
    """`a.b` matches itself and its subdomains, `.a.b` and `*.a.b` match subdomains only."""
    name = name.removeprefix("*")
    return host.endswith(name) if name.startswith(".") else f".{host}".endswith(f".{name}")


def _without_port(rule: str) -> tuple[str, str]:
    """`host:1`, `1.2.3.4:1`, `[::1]:1`, each with or without port, and a bare `::1`."""
    if _address(rule) is not None:
        return rule, ""
    name, _, port = rule.rpartition(":") if ":" in rule.rpartition("]")[2] else (rule, "", "")
    return name.strip("[]"), port


def _in_network(address: _Address, rule: str) -> bool:
    try:
        return address in ip_network(rule, strict=False)
    except ValueError:
        return False


def _address(text: str) -> _Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None
