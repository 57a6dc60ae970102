"""Parses URLs, recognises loopback addresses, and finds the proxy for a request."""

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from trimtab.contracts.errors import ModelError

_PORTS = {"http": 80, "https": 443}


class Url(msgspec.Struct, frozen=True):
    """An http or https address. `target` is the path and query as sent."""

    scheme: str
    host: str
    port: int
    target: str = "/"
    user: str = ""

    @property
    def authority(self) -> str:
        """The value of the Host header: the host, and the port unless it is the default."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.authority}"

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.host)


@lru_cache(maxsize=64)
def parse_url(text: str, what: str = "model service") -> Url:
    """Parse an absolute address. Raises `ModelError`, which names `what` the address is for."""
    scheme, separator, rest = text.strip().partition("://")
    scheme = scheme.lower()
    cut = min((index for index in map(rest.find, "/?#") if index >= 0), default=len(rest))
    user, _, authority = rest[:cut].rpartition("@")
    host, port = _split_port(authority)
    valid = separator and scheme in _PORTS and _is_host(host) and _is_port(port)
    if not valid:
        raise ModelError(
            f"The address of the {what} is not a valid http or https URL; correct "
            f"{_without_user(text, user)!r}.",
            category="invalid",
        )
    target = rest[cut:].partition("#")[0]
    if not target.startswith("/"):
        target = "/" + target
    return Url(scheme, _ascii_host(host), int(port or _PORTS[scheme]), _quoted(target), user)


def is_loopback(host: str) -> bool:
    """Return True if a name or address can only mean this machine (RFC 6761 for names)."""
    if host == "localhost" or host.endswith(".localhost") or host == "::1":
        return True
    parts = host.split(".")
    return len(parts) == 4 and parts[0] == "127" and all(part.isdigit() for part in parts)


def proxy_for(url: Url, environment: Mapping[str, str]) -> Url | None:
    """Return the proxy for a URL, or None. Loopback never goes through a proxy."""
    if url.is_loopback:
        return None
    address = _variable(environment, f"{url.scheme}_proxy") or _variable(environment, "all_proxy")
    if not address or _excluded(url, _variable(environment, "no_proxy")):
        return None
    if "://" not in address:
        address = "http://" + address
    return parse_url(address, "proxy")


def _variable(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name) or environment.get(name.upper()) or ""


def _excluded(url: Url, rules: str) -> bool:
    for rule in rules.replace(",", " ").split():
        host, port = _split_port(rule.lower())
        if port and port != str(url.port):
            continue
        name = host.removeprefix("*").lstrip(".")
        if rule == "*" or url.host == name or (name and url.host.endswith("." + name)):
            return True
        if "/" in host and _in_network(url.host, host):
            return True
    return False


def _in_network(host: str, network: str) -> bool:
    import ipaddress

    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


def _split_port(authority: str) -> tuple[str, str]:
    """Split `host:port`, `[v6]:port`, or a bare host or IPv6 address."""
    if authority.startswith("["):
        host, _, port = authority[1:].partition("]")
        return host.lower(), port.removeprefix(":")
    host, colon, port = authority.partition(":")
    if colon and ":" in port:
        return authority.lower(), ""
    return host.lower(), port


def _is_host(host: str) -> bool:
    """Return True if a host name is short enough to exist."""
    labels = host.removesuffix(".").split(".")
    return len(host) < 254 and all(0 < len(label) < 64 for label in labels) and host.isprintable()


def _is_port(port: str) -> bool:
    return not port or (port.isascii() and port.isdigit() and 0 < int(port) < 65536)


def _ascii_host(host: str) -> str:
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        raise ModelError(
            f"The host name {host!r} is invalid; correct the address of the model service.",
            category="invalid",
        ) from None


def _quoted(target: str) -> str:
    if target.isascii() and target.isprintable() and " " not in target:
        return target
    from urllib.parse import quote

    return quote(target, safe="/?&=%:+,;@!$'()*~-._")


def _without_user(text: str, user: str) -> str:
    return text.replace(user, "***") if user else text


def join_url(base: str, path: str, model: str) -> str:
    """Join a base URL and a path; a part of the path that the base ends with is not repeated."""
    base, question, query = base.partition("?")
    base = base.rstrip("/")
    path, _, path_query = path.partition("?")
    if "{model}" in path:
        from urllib.parse import quote

        path = path.replace("{model}", quote(model, safe=""))
    if base.endswith(path):
        path = ""
    elif base.endswith("/v1"):
        path = path.removeprefix("/v1")
    queries = "&".join(part for part in (path_query, query if question else "") if part)
    return base + path + (f"?{queries}" if queries else "")
