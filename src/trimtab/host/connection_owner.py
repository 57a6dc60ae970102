"""Finds out which user of this machine a loopback connection belongs to."""

import os
import socket
import struct
import sys
from contextlib import suppress

TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
"""The kernel's lists of connections, with the user of each end on this machine."""
MAPPED = "0000000000000000FFFF0000"
"""The beginning of an IPv4 address in the second list: how .NET and Java connect."""
SECONDS = 1.0

_NETLINK_SOCK_DIAG = 4
_BY_FAMILY, _REQUEST = 20, 1
_ANY_STATE, _NO_COOKIE = 0xFFFFFFFF, b"\xff" * 8
_HEADER = struct.Struct("=IHHII")
_OWNER = struct.Struct("=II")
_OWNER_OFFSET = _HEADER.size + 4 + 48 + 12
"""The offset of user and inode in an answer: after its header, state, addresses and timers."""

Address = tuple[str, int]


def can_find_owner() -> bool:
    return sys.platform.startswith("linux") and os.access(TABLES[0], os.R_OK)


def is_own(client: Address, server: Address) -> bool:
    """Return True if the client's end of a connection belongs to our user."""
    return find_owner(client, server) == os.geteuid()


def find_owner(client: Address, server: Address) -> int | None:
    """Return the user id of the client's end of a connection, None if nobody has it open.

    An end that its process has closed has no inode, and user 0 in the tables, whoever it was.
    """
    try:
        user, inode = ask_kernel(client, server)
    except OSError:
        user, inode = search_tables(client, server)
    return user if inode else None


def ask_kernel(client: Address, server: Address) -> tuple[int, int]:
    """Return user and inode of the client's end, at the same cost for any number of connections.

    Raises `OSError` if there is no such connection, or the kernel does not answer such questions.
    """
    ends = struct.pack("!HH", client[1], server[1])
    addresses = b"".join(socket.inet_aton(end[0]) + bytes(12) for end in (client, server))
    wanted = ends + addresses + struct.pack("=I", 0) + _NO_COOKIE
    about = struct.pack("=BBBBI", socket.AF_INET, socket.IPPROTO_TCP, 0, 0, _ANY_STATE)
    request = about + wanted
    head = _HEADER.pack(_HEADER.size + len(request), _BY_FAMILY, _REQUEST, 0, 0)
    kind = socket.SOCK_RAW | socket.SOCK_CLOEXEC
    with socket.socket(socket.AF_NETLINK, kind, _NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(SECONDS)
        kernel.send(head + request)
        answer = kernel.recv(8192)
    if _HEADER.unpack_from(answer)[1] != _BY_FAMILY:
        raise OSError("no answer")
    user, inode = _OWNER.unpack_from(answer, _OWNER_OFFSET)
    return user, inode


def search_tables(client: Address, server: Address) -> tuple[int, int]:
    """Return user and inode of the client's end from the lists of all connections, else zeros."""
    ends = [encode(client), encode(server)]
    for table, prefix in zip(TABLES, ("", MAPPED), strict=True):
        wanted = [prefix + end for end in ends]
        with suppress(OSError), open(table, encoding="ascii") as file:
            for line in file:
                row = line.split()
                if row[1:3] == wanted:
                    return int(row[7]), int(row[9])
    return 0, 0


def encode(address: Address) -> str:
    """Return an address as the table has it: the bytes in the order of this machine."""
    (number,) = struct.unpack("=I", socket.inet_aton(address[0]))
    return f"{number:08X}:{address[1]:04X}"
