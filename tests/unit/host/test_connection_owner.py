"""Whose a loopback connection is, and who is served."""

import os
import pwd
import socket
import subprocess
import sys

import pytest

from trimtab.host.connection_owner import can_find_owner, find_owner, is_own, search_tables

pytestmark = pytest.mark.skipif(not can_find_owner(), reason="the kernel lists no connections here")

CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2]))).recv(1)"


def test_a_connection_of_our_own_is_ours() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()),
    ):
        connection, _ = server.accept()
        with connection:
            ends = connection.getpeername(), connection.getsockname()
            assert find_owner(*ends) == os.geteuid()
            assert is_own(*ends)
            assert find_owner(("127.0.0.1", 1), ends[1]) is None
            assert not is_own(("127.0.0.1", 1), ends[1])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_a_connection_of_another_user_is_not_ours() -> None:
    other = pwd.getpwnam("nobody").pw_uid
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
        process = subprocess.Popen([python, "-c", CONNECT, host, str(port)], user=other)
        try:
            server.settimeout(50)
            connection, _ = server.accept()
            with connection:
                ends = connection.getpeername(), connection.getsockname()
                assert find_owner(*ends) == other
                assert not is_own(*ends)
        finally:
            process.wait(20)


def test_a_connection_that_its_process_has_closed_is_nobodys() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        connection, _ = server.accept()
        with connection:
            ends = connection.getpeername(), connection.getsockname()
            client.close()
            assert connection.recv(1) == b""
            assert find_owner(*ends) is None
            assert search_tables(*ends)[1] == 0


def test_a_connection_by_an_ipv4_address_in_ipv6_is_found() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_INET6) as client,
    ):
        client.connect(("::ffff:127.0.0.1", server.getsockname()[1]))
        connection, _ = server.accept()
        with connection:
            ends = connection.getpeername(), connection.getsockname()
            assert is_own(*ends)
            user, inode = search_tables(*ends)
            assert user == os.geteuid()
            assert inode
