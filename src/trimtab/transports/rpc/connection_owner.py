"""Finds out which user of this machine a loopback connection belongs to."""

import os
import socket
import struct
import sys

TABLE = "/proc/net/tcp"
"""The kernel's list of connections, with the user of each end on this machine."""

Address = tuple[str, int]


def can_find_owner() -> bool:
    return sys.platform.startswith("linux") and os.access(TABLE, os.R_OK)


def find_owner(client: Address, server: Address) -> int | None:
    """Return the user id of the client's end of a connection, None if it is not listed."""
    wanted = [encode(client), encode(server)]
    try:
        with open(TABLE, encoding="ascii") as file:
            rows = [line.split() for line in file]
    except OSError:
        return None
    return next((int(row[7]) for row in rows if row[1:3] == wanted), None)


def is_own(client: Address, server: Address) -> bool:
    """Return True if the client's end of a connection belongs to our user."""
    return find_owner(client, server) == os.geteuid()


def encode(address: Address) -> str:
    """Return an address as the table has it: the bytes in the order of this machine."""
    (number,) = struct.unpack("=I", socket.inet_aton(address[0]))
    return f"{number:08X}:{address[1]:04X}"
