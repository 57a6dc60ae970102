"""Addresses and the patterns that cover them."""

import re
from typing import NamedTuple

_ADDRESS = re.compile(
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://)?(?P<authority>[^/?#\\]*)(?P<rest>[/?#].*)?",
    re.DOTALL,
)
_HOST = re.compile(r"(?:\*\.)?[\w-]+(?:\.[\w-]+)*\.?|\*|\[[0-9a-fA-F:.]+\]")
_PORTS = {"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21"}


class Address(NamedTuple):
    """The parts of an address that rules look at."""

    scheme: str
    host: str
    port: str
    path: str


def parse_pattern(text: str) -> Address | None:
    """A pattern: a bare domain means https; `*` stands for any host, `*.` for subdomains."""
    if text == "*":
        return Address("*", "*", "*", "/")
    address = _parse(text)
    if address is None or not _HOST.fullmatch(address.host):
        return None
    return address


def _parse(text: str) -> Address | None:
    match = _ADDRESS.fullmatch(text.strip())
    if match is None or re.search(r"[\s\x00-\x1f\x7f\\]", text):
        return None
    authority = match["authority"].rpartition("@")[2]
    host, _, port = (
        authority.rpartition(":") if re.search(r":\d+$", authority) else (authority, "", "")
    )
    scheme = (match["scheme"] or "https").lower()
    host = _canonical(host)
    if not host:
        return None
    return Address(scheme, host, port or _PORTS.get(scheme, ""), match["rest"] or "/")


def _canonical(host: str) -> str:
    host = host.lower().rstrip(".")
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        return host


def matches_url(pattern: str, url: str, *, denies: bool = False) -> bool:
    """Whether a pattern covers an address; one that denies ignores protocol and port."""
    wanted, given = parse_pattern(pattern), _parse(url)
    if wanted is None:
        return denies
    if given is None:
        return denies and wanted.host.removeprefix("*.") in url.lower()
    if not _covers_host(wanted.host, given.host, denies=denies):
        return False
    same_origin = (wanted.scheme, wanted.port) == (given.scheme, given.port)
    if not (denies or same_origin or wanted.scheme == "*"):
        return False
    return _covers_path(wanted.path, given.path)


def _covers_host(pattern: str, host: str, *, denies: bool) -> bool:
    if pattern == "*":
        return True
    if pattern.startswith("*."):
        return host.endswith(pattern[1:]) or (denies and host == pattern[2:])
    return host == pattern


def _covers_path(pattern: str, path: str) -> bool:
    pattern = pattern.removesuffix("*")
    if pattern in ("", "/"):
        return True
    if re.search(r"(^|/)(\.|%2e){2}(/|$|[?#])", path, re.IGNORECASE):
        return False
    beginning = pattern.rstrip("/")
    return path in (pattern, beginning) or path.startswith(
        (f"{beginning}/", f"{beginning}?", f"{beginning}#")
    )
