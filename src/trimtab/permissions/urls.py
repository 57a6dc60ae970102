"""Addresses and the patterns that cover them."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_ADDRESS = re.compile(
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://)?(?P<authority>[^/?#\\]*)(?P<rest>[/?#].*)?",
    re.DOTALL,
)
_HOST = re.compile(r"(?:\*\.)?[\w-]+(?:\.[\w-]+)*\.?|\*|\[[0-9a-fA-F:.]+\]")
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+")
_BEGINNING = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:/+|(?:https?|wss?|ftps?):|/+)", re.IGNORECASE)
_ESCAPES = re.compile(r"(?:%u00[0-9A-Fa-f]{2}|%[0-9A-Fa-f]{2})+")
_OVERLONG = {"\xc0\xae": ".", "\xc0\xaf": "/", "\xc1\x9c": "\\"}
"""Characters as some servers still read them from two bytes where one would do."""
_LOOPBACK = re.compile(r"(?:.*\.)?localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\]")
"""Names of this machine; a rule that denies one of them denies them all."""
_DECODINGS = 4
"""A text is decoded so often at most: servers behind others decode once more."""
_PORTS = {"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21"}
_HIGHEST_PORT = 65535


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
    mistyped = address.host in _PORTS and address.path.startswith("//")  # `https//example.com`
    if mistyped or (address.port and int(address.port) > _HIGHEST_PORT):
        return None
    return address._replace(port="*") if any_port else address


def find_label(pattern: str) -> str:
    """Return the host of a pattern if it is a name without a dot, as machines nearby have."""
    address = parse_pattern(pattern)
    host = address.host if address is not None else ""
    plain = re.fullmatch(r"[a-z_][\w-]*", host) is not None and host != "localhost"
    return host if plain else ""


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
    """Return True if a pattern covers an address.

    One that allows is taken literally. One that denies ignores protocol and port, and covers every
    spelling that programs take for what it names.
    """
    wanted = parse_pattern(pattern)
    if wanted is None:
        return denies
    if denies:
        return _is_denied(wanted, url)
    given = _parse(url)
    if given is None or not _covers_host(wanted.host, given.host):
        return False
    literal = wanted.host == "*" or _name_host(url) in (given.host, _name_host(pattern))
    same_origin = wanted.scheme == given.scheme and wanted.port in (given.port, "*")
    if not literal or not (same_origin or wanted.scheme == "*"):
        return False
    return _covers_path(wanted.path, given.path)


def may_match(pattern: str, known: str) -> bool:
    """Return True if a pattern may cover an address of which only the beginning is known."""
    wanted = parse_pattern(pattern)
    beginning = _BEGINNING.match(known)
    rest = known[beginning.end() :] if beginning else known
    if wanted is None or not re.search(r"[/?#\\]", rest):
        return True
    hosts = (name for host, _ in _read_loosely(known) for name in _list_hosts(host))
    return any(_covers_host(wanted.host, name, denies=True) for name in hosts)


def _name_host(text: str) -> str:
    """The host of an address as it is written, but for capital letters and a dot at its end."""
    match = _ADDRESS.fullmatch(text.strip())
    authority = match["authority"] if match else ""
    return re.sub(r":\d+$", "", authority.rpartition("@")[2]).lower().removesuffix(".")


def _is_denied(wanted: Address, url: str) -> bool:
    # Of a path with a pattern in it, everything counts that begins like it.
    beginning, star, _ = wanted.path.partition("*")
    is_open = bool(star) and beginning[-1:] != "/"
    forms = _list_forms(beginning)
    for host, path in _read_loosely(url):
        if any(_covers_host(wanted.host, name, denies=True) for name in _list_hosts(host)):
            given = _list_forms(path)
            if any(
                _begins(one, form) or (is_open and one.startswith(form))
                for one in given
                for form in forms
            ):
                return True
    # Of a text that is no address the name of the host is enough.
    return _parse(url) is None and wanted.host.removeprefix("*.") in url.lower()


def _begins(path: str, beginning: str) -> bool:
    if beginning in ("", "/"):
        return True
    return path == beginning or path.startswith(tuple(beginning + end for end in "/?#"))


def _read_loosely(url: str) -> Iterator[tuple[str, str]]:
    """The hosts that programs may find in a text, each with the path behind it."""
    plain = re.sub(r"[\x00-\x20\x7f]", "", url)
    for text in dict.fromkeys((plain, plain.replace("\\", "/"))):
        beginning = _BEGINNING.match(text)
        rest = text[beginning.end() :] if beginning else text
        for ends in ("/?#", "/?"):
            match = re.match(rf"([^{ends}]*)(.*)", rest, re.DOTALL)
            assert match is not None
            # Programs disagree on which of several @ ends the name of a user.
            hosts = match[1].split("@")
            for host in hosts[1:] or hosts:
                yield re.sub(r":\d*$", "", host), match[2]


def _list_hosts(host: str) -> Iterator[str]:
    """The names that a host may be looked up by."""
    for text in _decode(host):
        name = _canonical(text)
        yield name
        if not text.isascii():
            # Newer programs encode letters that older ones replace.
            labels = re.split(r"[.\u3002\uff0e\uff61]", text.lower())
            yield ".".join(map(_to_punycode, labels)).rstrip(".")
        if name[:1] == "[":
            yield from _find_embedded(name[1:-1])


def _to_punycode(label: str) -> str:
    return label if label.isascii() else f"xn--{label.encode('punycode').decode()}"


def _find_embedded(text: str) -> Iterator[str]:
    """The IPv4 address in an IPv6 address that leads to the same machine."""
    from ipaddress import IPv4Address, IPv6Address

    try:
        number = int(IPv6Address(text))
    except ValueError:
        return
    if number >> 32 in (0, 0x64FF9B << 64) and number > 1:
        yield str(IPv4Address(number & 0xFFFFFFFF))


def _list_forms(path: str) -> list[str]:
    """The paths that a server may look for, in small letters."""
    end = next((index for index, one in enumerate(path) if one in "?#"), len(path))
    forms: dict[str, None] = {}
    for text in _decode(path[:end]):
        parts = re.split(r"[/\\]", text.casefold().partition("\0")[0])
        for named in (parts, [part.partition(";")[0] for part in parts]):
            plain = [_trim(part) for part in named]
            forms["/" + "/".join(part for part in plain if part not in ("", "."))] = None
            forms["/" + "/".join(_climb(plain))] = None
    return [form + path[end:].casefold() for form in forms]


def _trim(part: str) -> str:
    """A part of a path without what some servers cut off its end."""
    return part if part in (".", "..") else part.rstrip(". ")


def _climb(parts: Iterable[str]) -> list[str]:
    path: list[str] = []
    for part in parts:
        if part == "..":
            path = path[:-1]
        elif part not in ("", "."):
            path.append(part)
    return path


def _decode(text: str) -> Iterator[str]:
    """A text, and what becomes of it when escapes in it are read once and again."""
    for _ in range(_DECODINGS):
        yield text
        decoded = _ESCAPES.sub(_read_escapes, text)
        for given, meant in _OVERLONG.items():
            decoded = decoded.replace(given, meant)
        if decoded == text:
            return
        text = decoded
    yield text


def _read_escapes(match: re.Match[str]) -> str:
    data = bytes.fromhex(match[0].replace("%u00", "").replace("%", ""))
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _climbs(path: str) -> bool:
    """Return True if a server may take a part of a path for its parent, however it is written."""
    text = re.split(r"[?#]", path, maxsplit=1)[0]
    for _ in range(3):  # servers behind others may decode once more
        text = _unescape(text)
    return any(part.partition(";")[0] == ".." for part in re.split(r"[/\\]", text))


def _covers_host(pattern: str, host: str, *, denies: bool = False) -> bool:
    if pattern == "*":
        return True
    if denies and _LOOPBACK.fullmatch(pattern) and _LOOPBACK.fullmatch(host):
        return True
    if pattern.startswith("*."):
        return host.endswith(pattern[1:]) or (denies and host == pattern[2:])
    return host == pattern


def _covers_path(pattern: str, path: str) -> bool:
    pattern = pattern.removesuffix("*")
    if pattern in ("", "/"):
        return True
    return not _climbs(path) and (path == pattern or _begins(path, pattern.rstrip("/")))
