"""Addresses and the patterns that cover them."""

import re
from typing import NamedTuple

_ADDRESS = re.compile(
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://)?(?P<authority>[^/?#\\]*)(?P<rest>[/?#].*)?",
    re.DOTALL,
)
_HOST = re.compile(r"(?:\*\.)?[\w-]+(?:\.[\w-]+)*\.?|\*|\[[0-9a-fA-F:.]+\]")
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+")
_PORTS = {"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21"}


class Address(NamedTuple):
    """The parts of an address that rules look at."""

    scheme: str
    host: str
    port: str
    path: str


def parse_pattern(text: str) -> Address | None:
    """A pattern: a bare domain means https; `*` stands for any host, `*.` for subdomains.

    `:*` behind the host stands for any port.
    """
    if text == "*":
        return Address("*", "*", "*", "/")
    any_port = re.match(r"[^/?#]*[^/?#:]:\*(?=[/?#]|$)", text.partition("://")[2] or text)
    address = _parse(text.replace(":*", "", 1) if any_port else text)
    if address is None or not _HOST.fullmatch(address.host):
        return None
    return address._replace(port="*") if any_port else address


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
    """A host as programs understand it: escapes, alphabets and numbers brought to one form."""
    host = _unescape(host).lower().rstrip(".")
    if not host.isascii():
        try:
            host = host.encode("idna").decode().rstrip(".")
        except UnicodeError:
            return host
    if host[:1] == "[" and host[-1:] == "]":
        return _read_ipv6(host[1:-1]) or host
    return _read_ipv4(host) or host


def _read_ipv4(host: str) -> str | None:
    """`127.1`, `0x7f000001`, `017700000001` and the like in four decimal numbers."""
    parts = host.split(".")
    if len(parts) > 4 or not all(_NUMBER.fullmatch(part) for part in parts):
        return None
    *leading, last = (int(part, _base(part)) for part in parts)
    if last >= 256 ** (4 - len(leading)) or any(number > 255 for number in leading):
        return None
    octets = [*leading, *last.to_bytes(4 - len(leading), "big")]
    return ".".join(map(str, octets))


def _base(number: str) -> int:
    if number.startswith("0x"):
        return 16
    return 8 if number[0] == "0" and re.fullmatch("[0-7]+", number) else 10


def _read_ipv6(text: str) -> str | None:
    from ipaddress import IPv6Address

    try:
        address = IPv6Address(text.partition("%")[0])
    except ValueError:
        return None
    return str(address.ipv4_mapped) if address.ipv4_mapped else f"[{address}]"


def _unescape(text: str) -> str:
    return re.sub(r"%([0-9A-Fa-f]{2})", lambda match: chr(int(match[1], 16)), text)


def matches_url(pattern: str, url: str, *, denies: bool = False) -> bool:
    """Return True if a pattern covers an address; one that denies ignores protocol and port."""
    wanted, given = parse_pattern(pattern), _parse(url)
    if wanted is None:
        return denies
    if given is None:
        return denies and wanted.host.removeprefix("*.") in url.lower()
    if not _covers_host(wanted.host, given.host, denies=denies):
        return False
    same_origin = wanted.scheme == given.scheme and wanted.port in (given.port, "*")
    if not (denies or same_origin or wanted.scheme == "*"):
        return False
    path = _normal_path(given.path) if denies else given.path
    return _covers_path(wanted.path, path)


def _climbs(path: str) -> bool:
    """Return True if a server may take a part of a path for its parent, however it is written."""
    text = re.split(r"[?#]", path, maxsplit=1)[0]
    for _ in range(3):  # servers behind others may decode once more
        text = _unescape(text)
    return any(part.partition(";")[0] == ".." for part in re.split(r"[/\\]", text))


def _normal_path(path: str) -> str:
    """The path that a server would look for, however it is written."""
    end = next((index for index, one in enumerate(path) if one in "?#"), len(path))
    parts: list[str] = []
    for part in _unescape(path[:end]).split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts) + path[end:]


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
    if _climbs(path):
        return False
    beginning = pattern.rstrip("/")
    return path in (pattern, beginning) or path.startswith(
        (f"{beginning}/", f"{beginning}?", f"{beginning}#")
    )
