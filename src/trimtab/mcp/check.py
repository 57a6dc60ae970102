"""Checks the connection to an MCP server, without a session."""

import os
import tempfile
from collections.abc import Callable, Mapping

from trimtab.config.paths import find_home
from trimtab.contracts.customization import McpServer
from trimtab.contracts.mcp import Launch, ServerAccess, SignIn
from trimtab.mcp.brief_connection import CheckResult, connect_briefly
from trimtab.mcp.connections import TIMEOUTS
from trimtab.mcp.messages import MAX_MESSAGE_BYTES
from trimtab.mcp.oauth.session_sign_in import SessionSignIn
from trimtab.mcp.oauth.store import GrantStore
from trimtab.providers.http import HttpClient
from trimtab.providers.sse import SseParser
from trimtab.workspace.local import LocalWorkspace
from trimtab.workspace.piped_program import PipedProgram


class ServerReach:
    """The means to reach servers outside a session; close it when done."""

    def __init__(self, env: Mapping[str, str], *, offline: bool) -> None:
        self.http = HttpClient(env, offline=offline, timeouts=TIMEOUTS)
        self._files = tempfile.TemporaryDirectory(prefix="trimtab-mcp-")
        self._workspace = LocalWorkspace(root=os.getcwd(), files=self._files.name, env=env)

    def build_access(self, sign_in: Callable[[McpServer], SignIn] | None) -> ServerAccess:
        return ServerAccess(
            cwd=self._workspace.root,
            env=self._workspace.child_env,
            start=self._start,
            http=lambda: self.http,
            read_events=lambda: SseParser(MAX_MESSAGE_BYTES),
            sign_in=sign_in,
        )

    def _start(self, launch: Launch) -> PipedProgram:
        self._workspace.shells.guard()
        return PipedProgram(launch)

    async def aclose(self) -> None:
        await self.http.aclose()
        await self._workspace.aclose()
        self._files.cleanup()


async def check_server(server: McpServer, env: Mapping[str, str], *, offline: bool) -> CheckResult:
    """Connect, list the tools, and stop the server again. No tool is called."""
    reach = ServerReach(env, offline=offline)
    store = GrantStore(find_home(env), env)
    try:
        return await connect_briefly(
            server,
            reach.build_access(lambda server: SessionSignIn(server, reach.http, store, _hide)),
        )
    finally:
        await reach.aclose()


def _hide(tokens: tuple[str, ...]) -> None:
    """Do nothing: tokens are masked in the events of sessions, and there is no session."""
