"""Connects a command in its own network namespace to the proxy outside it.

A socket belongs to the namespace it was created in, whichever process has it. So, right before the
command begins, a listening socket is created inside and passed out; the proxy accepts connections
on it from outside. Nothing of ours stays inside, and there is no other way out.
"""

import asyncio
import os
import socket
import sys
from collections.abc import Mapping, Sequence

from trimtab.workspace.sandbox.hosts import HostList
from trimtab.workspace.sandbox.proxy import AskHost, FilteringProxy, OnRefusal

PORT = 61080
"""Above the range of automatically assigned ports; in a new namespace it is free."""
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
"""Runs inside, where our files may not be readable: hence a string, and built-in modules only."""


class Bridge:
    """The network access of a command, open from its start to its end."""

    def __init__(self, hosts: HostList, on_refusal: OnRefusal, ask: AskHost | None = None) -> None:
        self._proxy = FilteringProxy(hosts, on_refusal, ask=ask)
        self._ours, self._theirs = socket.socketpair()
        self._ours.setblocking(False)

    @property
    def prefix(self) -> Sequence[str]:
        """The arguments to put before the command, inside the namespace."""
        # Resolved, because starting Python in a virtual environment takes a quarter longer.
        python = os.path.realpath(sys.executable)
        return [python, "-I", "-S", "-c", SHIM, str(self.descriptor)]

    @property
    def descriptor(self) -> int:
        """The descriptor that the command must inherit."""
        return self._theirs.fileno()

    def open(self) -> None:
        """Wait for the socket of a command that has been started."""
        self._theirs.close()
        asyncio.get_running_loop().add_reader(self._ours, self._arrived)

    def _arrived(self) -> None:
        loop = asyncio.get_running_loop()
        _, handed, _, _ = socket.recv_fds(self._ours, 1, 1)
        loop.remove_reader(self._ours)
        self._ours.close()
        if handed:  # a command that could not be started passes nothing
            self._proxy.serve(socket.socket(fileno=handed[0]))

    def close(self) -> None:
        """Close the connection of a command that has ended or is no longer watched."""
        if self._ours.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._ours)
            self._ours.close()
        self._theirs.close()
        self._proxy.close()


def proxy_variables(hosts: HostList) -> Mapping[str, str]:
    """Return the variables that announce the proxy, except for the command's own servers."""
    url = f"http://127.0.0.1:{PORT}"
    listed = {pattern.host for pattern in hosts.allowed}
    own = ",".join(name for name in LOCAL if name not in listed)
    names = ("http_proxy", "https_proxy", "all_proxy")
    variables = dict.fromkeys((*names, *(name.upper() for name in names)), url)
    return variables | {"no_proxy": own, "NO_PROXY": own}
