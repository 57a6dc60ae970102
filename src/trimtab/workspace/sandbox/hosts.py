"""The hosts that sandboxed commands may reach: patterns, and checks of resolved addresses."""

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address

import msgspec

USUAL_PORTS = (80, 443)
ANY_PORT = 0
_PATTERN = re.compile(
    r"(?P<host>\*|(?:\*\.)?[\w-]+(?:\.[\w-]+)*\.?|\[[0-9a-fA-F:.]+\])(?P<port>:.+)?"
)
_HOST = re.compile(r"[\w-]+(?:\.[\w-]+)*")


class HostPattern(msgspec.Struct, frozen=True):
    """A host, `*.` and a domain for its subdomains, or `*`; empty `ports` means any."""

    host: str
    ports: tuple[int, ...] = USUAL_PORTS

    def covers(self, host: str, port: int) -> bool:
        if self.ports and port not in self.ports:
            return False
        if self.host.startswith("*"):
            return host.endswith(self.host[1:])
        return host == self.host

    @property
    def is_exact(self) -> bool:
        return not self.host.startswith("*")


def parse_pattern(text: str) -> HostPattern:
    """Parse `example.com`, `*.example.com:8443`, `[::1]:*`, `*`. Raises `ValueError`."""
    match = _PATTERN.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a host")
    host = match["host"]
    if not host.startswith("*"):
        host = canonical(host)
    port = (match["port"] or "")[1:]
    if port == "*":
        return HostPattern(host.lower().rstrip("."), ())
    if port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ValueError(f"{text!r} has no port after the colon")
    return HostPattern(host.lower().rstrip("."), (int(port),) if port else USUAL_PORTS)


def canonical(host: str) -> str:
    """Return the canonical spelling of a host. Raises `ValueError` if it is invalid."""
    if host.startswith("[") and host.endswith("]"):
        return str(IPv6Address(host[1:-1]))
    host = host.lower().rstrip(".")
    if not host.isascii():
        host = host.encode("idna").decode()
    if not _HOST.fullmatch(host) or len(host) > 253:
        raise ValueError(f"{host[:100]!r} is not a host")
    return host


class HostList(msgspec.Struct, frozen=True):
    """Patterns of allowed hosts, and of denied hosts, which take precedence."""

    allowed: tuple[HostPattern, ...]
    denied: tuple[HostPattern, ...] = ()

    def lists(self, host: str, port: int) -> bool:
        """Return True if a host is allowed or denied by name."""
        return any(pattern.covers(host, port) for pattern in (*self.denied, *self.allowed))

    def find(self, host: str, port: int) -> HostPattern:
        """Return the pattern that allows a host, exact ones first. Raises `PermissionError`."""
        if any(pattern.covers(host, port) for pattern in self.denied):
            raise PermissionError("the host is denied")
        found = [pattern for pattern in self.allowed if pattern.covers(host, port)]
        if not found:
            known = any(pattern.covers(host, (*pattern.ports, port)[0]) for pattern in self.allowed)
            raise PermissionError(
                f"port {port} of it is not on the list of allowed hosts"
                if known
                else "it is not on the list of allowed hosts"
            )
        return max(found, key=lambda pattern: pattern.is_exact)

    def check_address(self, pattern: HostPattern, address: str, port: int) -> None:
        """Raise `PermissionError` if a name resolves to this machine or its network."""
        found = unwrap(ip_address(address))
        spelled = str(found)
        if any(pattern.covers(spelled, port) for pattern in self.denied if pattern.is_exact):
            raise PermissionError(f"its address {address} is denied")
        if pattern.host in (spelled, "localhost") or pattern.host.endswith(".localhost"):
            return
        if found.is_loopback or found.is_link_local or found.is_unspecified or found.is_multicast:
            raise PermissionError(f"its address {address} is this machine's or link-local")
        if not found.is_global and not pattern.is_exact:
            raise PermissionError(
                f"its address {address} is in a private network; list the host by its full name"
            )


def unwrap(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the IPv4 address embedded in an IPv6 address, if any: mapped, 6to4 or translated."""
    if isinstance(address, IPv4Address):
        return address
    carried = address.ipv4_mapped or address.sixtofour
    if carried is None and int(address) >> 32 == 0x0064FF9B << 64:
        carried = IPv4Address(int(address) & 0xFFFFFFFF)
    return carried or address


def build_list(allowed: Iterable[str], denied: Iterable[str] = ()) -> HostList:
    """Parse lists of patterns. Raises `ValueError`."""
    barred = (parse_pattern(text) for text in denied)
    return HostList(
        tuple(parse_pattern(text) for text in allowed),
        tuple(
            HostPattern(host.host, () if host.ports == USUAL_PORTS else host.ports)
            for host in barred
        ),
    )
