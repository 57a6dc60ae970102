"""Joins a command in a network namespace of its own to the proxy outside it.

A socket belongs to the namespace it was made in, whoever holds it. So the last thing that happens
inside before the command begins is that a listening socket is made there and handed out; here the
proxy takes connections from it. Nothing stays behind inside, and nothing else leads out.
"""

import asyncio
import os
import socket
import sys
from collections.abc import Mapping, Sequence

from trimtab.workspace.sandbox.hosts import HostList
from trimtab.workspace.sandbox.proxy import FilteringProxy, OnRefusal

PORT = 61080
"""Above the numbers that systems give out by themselves; in a fresh namespace it is free."""
LOCAL = ("localhost", "127.0.0.1", "::1")

SHIM = f"""\
import _signal, _socket, os, sys
control = _socket.socket(fileno=int(sys.argv[1]))
listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
listener.bind(("127.0.0.1", {PORT}))
listener.listen(128)
handed = listener.fileno().to_bytes(4, sys.byteorder)
control.sendmsg([b"x"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, handed)])
control.close()
for number in (_signal.SIGPIPE, _signal.SIGXFSZ):
    _signal.signal(number, _signal.SIG_DFL)
os.execvp(sys.argv[2], sys.argv[2:])
"""
"""Runs inside, where nothing of ours may be readable; hence a text, and built-in modules only."""


class Bridge:
    """The way out of one command, open from its start to its end."""

    def __init__(self, hosts: HostList, on_refusal: OnRefusal) -> None:
        self._proxy = FilteringProxy(hosts, on_refusal)
        self._ours, self._theirs = socket.socketpair()
        self._ours.setblocking(False)

    @property
    def prefix(self) -> Sequence[str]:
        """What to put in front of the command, inside the namespace."""
        # Not by its name in a virtual environment: to look for that takes a quarter longer.
        python = os.path.realpath(sys.executable)
        return [python, "-I", "-S", "-c", SHIM, str(self.descriptor)]

    @property
    def descriptor(self) -> int:
        """What the command must inherit."""
        return self._theirs.fileno()

    def open(self) -> None:
        """The command has been started: wait for its socket."""
        self._theirs.close()
        asyncio.get_running_loop().add_reader(self._ours, self._arrived)

    def _arrived(self) -> None:
        loop = asyncio.get_running_loop()
        _, handed, _, _ = socket.recv_fds(self._ours, 1, 1)
        loop.remove_reader(self._ours)
        self._ours.close()
        if handed:  # nothing is handed out by a command that could not be started
            self._proxy.serve(socket.socket(fileno=handed[0]))

    def close(self) -> None:
        """The command has ended, or is not watched any longer."""
        if self._ours.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._ours)
            self._ours.close()
        self._theirs.close()
        self._proxy.close()


def proxy_variables(hosts: HostList) -> Mapping[str, str]:
    """What tells programs of the proxy; servers of the command's own are reached without it."""
    url = f"http://127.0.0.1:{PORT}"
    listed = {one.host for one in hosts.allowed}
    own = ",".join(name for name in LOCAL if name not in listed)
    names = ("http_proxy", "https_proxy", "all_proxy")
    variables = dict.fromkeys((*names, *(name.upper() for name in names)), url)
    return variables | {"no_proxy": own, "NO_PROXY": own}
