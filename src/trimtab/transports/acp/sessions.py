"""Opens, lists and deletes the sessions of a client."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from trimtab.contracts.errors import SessionNotFound, TrimtabError
from trimtab.contracts.events.envelope import Event, JsonObject
from trimtab.contracts.options import Isolation, SessionOptions
from trimtab.host.session_list import list_sessions
from trimtab.runtime.runtime import Runtime
from trimtab.transports.acp.connection import Connection
from trimtab.transports.acp.protocol import INVALID_PARAMS, NOT_FOUND, AcpError, Then
from trimtab.transports.acp.schema import (
    ClientCapabilities,
    ListSessions,
    McpServer,
    NewSession,
    StoredSession,
)
from trimtab.transports.acp.session import EditorSession
from trimtab.transports.acp.settings import Settings

if TYPE_CHECKING:
    from trimtab.host.model_list import ModelList

PAGE = 100
"""The number of sessions in one answer to `session/list`."""


class OpenSession:
    """An open session, its options and its commands, as its client knows them."""

    def __init__(self, editor: EditorSession, settings: Settings) -> None:
        self.editor = editor
        self.settings = settings
        self._mode = editor.live.mode
        self._options = settings.describe_options()
        self._commands: list[JsonObject] = []

    def describe(self) -> JsonObject:
        return {"modes": self.settings.describe_modes(), "configOptions": self._options}

    def send_changes(self) -> None:
        """Tell the client about a changed mode, changed options and changed commands."""
        mode, options = self.editor.live.mode, self.settings.describe_options()
        if mode != self._mode:
            self._mode = mode
            self.editor.send({"sessionUpdate": "current_mode_update", "currentModeId": mode})
        if options != self._options:
            self._options = options
            self.editor.send({"sessionUpdate": "config_option_update", "configOptions": options})
        self.send_commands()

    def send_commands(self) -> None:
        from trimtab.transports.acp.commands import describe_commands

        commands = describe_commands(self.editor.live)
        if commands != self._commands:
            self._commands = commands
            self.editor.send(
                {"sessionUpdate": "available_commands_update", "availableCommands": commands}
            )


class EditorSessions:
    """The open sessions of one client."""

    def __init__(
        self,
        connection: Connection,
        env: Mapping[str, str],
        options: SessionOptions,
        observe: Callable[[Event, bytes], None] | None,
        runtime: Runtime,
        *,
        may_ask: bool,
    ) -> None:
        self._connection = connection
        self._env = env
        self._options = options
        self._observe = observe
        self._may_ask = may_ask
        self._runtime = runtime
        self._open: dict[str, OpenSession] = {}
        self._models: ModelList | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.capabilities = ClientCapabilities()
        self.client_name = ""

    def find(self, session_id: str) -> OpenSession:
        """Return an open session. Raises `AcpError`."""
        found = self._open.get(session_id)
        if found is None:
            raise AcpError(
                NOT_FOUND, f"No open session has the id {session_id!r}; create or load one first."
            )
        return found

    async def create(self, params: NewSession) -> Then:
        options = self._build_options(params)
        editor = self._new_editor()
        live = await self._runtime.create(options, editor.as_client())
        editor.attach(live)
        opened = self._add(editor)
        return Then({"sessionId": live.id, **opened.describe()}, lambda: self._present(opened))

    async def load(self, params: StoredSession) -> Then:
        """Open a stored session and send everything in it, before the answer."""
        opened, lines = await self._reopen(params)
        opened.editor.replay(lines, shown=True)
        return Then(opened.describe(), lambda: self._present(opened))

    async def resume(self, params: StoredSession) -> Then:
        """Open a stored session without sending anything of it."""
        opened, lines = await self._reopen(params)
        opened.editor.replay(lines, shown=False)
        return Then(opened.describe(), lambda: self._present(opened))

    async def fork(self, params: StoredSession) -> Then:
        """Open a copy of a session."""
        from trimtab.session.archive import Archive, Cut

        self._check_stored(params.session_id)
        archive = Archive(self._env)
        opened = self._open.get(params.session_id)
        if opened is not None:
            await opened.editor.live.synced()
        folder = archive.fork(params.session_id, Cut())
        copied, lines = await self._reopen(msgspec.structs.replace(params, session_id=folder.id))
        copied.editor.replay(lines, shown=False)
        result = {"sessionId": folder.id, **copied.describe()}
        return Then(result, lambda: self._present(copied))

    async def _reopen(self, params: StoredSession) -> tuple[OpenSession, Sequence[bytes]]:
        self._check_stored(params.session_id)
        if params.session_id in self._open:
            await self.close(params.session_id)
        before = Isolation(new=False)
        options = msgspec.structs.replace(self._build_options(params), isolation=before)
        editor = self._new_editor()
        try:
            live = await self._runtime.resume(params.session_id, options, editor.as_client())
        except SessionNotFound as error:
            raise AcpError(NOT_FOUND, error.message) from None
        editor.attach(live)
        return self._add(editor), [bytes(line) for line in live.read_events()]

    def _check_stored(self, session_id: str) -> None:
        if not session_id or not self._runtime.store.exists(session_id):
            raise AcpError(
                NOT_FOUND, f"There is no session {session_id!r}; list them with session/list."
            )

    def _new_editor(self) -> EditorSession:
        return EditorSession(
            self._connection, self.capabilities, self._observe, may_ask=self._may_ask
        )

    def _add(self, editor: EditorSession) -> OpenSession:
        booleans = self.capabilities.boolean_options
        opened = OpenSession(editor, Settings(editor.live, booleans=booleans))
        if self._models is not None:
            opened.settings.offers = self._models.known
        editor.on_settings_changed = opened.send_changes
        self._open[editor.id] = opened
        return opened

    def _present(self, opened: OpenSession) -> None:
        """Send what follows the answer: held updates, commands, and models once they are known."""
        opened.editor.release()
        opened.send_commands()
        task = asyncio.get_running_loop().create_task(self._add_models(opened))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _add_models(self, opened: OpenSession) -> None:
        from trimtab.host.model_list import ModelList

        if self._models is None:
            offline = bool(self._options.offline)
            self._models = ModelList(self._env, self._runtime.home, offline=offline)
        offers = await self._models.find()
        for session in (opened, *self._open.values()):
            session.settings.offers = offers
            session.send_changes()

    def _build_options(self, params: NewSession | StoredSession) -> SessionOptions:
        """Return the options of a session: those of the flags, in the client's folder."""
        if not os.path.isabs(params.cwd) or not os.path.isdir(params.cwd):
            raise AcpError(
                INVALID_PARAMS, f"no such directory: {params.cwd!r}; send an absolute path as cwd."
            )
        for folder in params.additional_directories:
            if not os.path.isabs(folder) or not os.path.isdir(folder):
                raise AcpError(
                    INVALID_PARAMS,
                    f"no such directory: {folder!r}; send absolute paths as additionalDirectories.",
                )
        options = self._options
        servers = {server.name: describe_server(server) for server in params.mcp_servers}
        customize = msgspec.structs.replace(
            options.customize, servers={**options.customize.servers, **servers}
        )
        folders = dict.fromkeys((*options.permissions.add_dirs, *params.additional_directories))
        permissions = msgspec.structs.replace(options.permissions, add_dirs=tuple(folders))
        return msgspec.structs.replace(
            options,
            cwd=os.path.normpath(params.cwd),
            customize=customize,
            permissions=permissions,
            needs_model=False,
            client_name=self.client_name or None,
        )

    def list(self, params: ListSessions) -> JsonObject:
        """Return stored sessions, newest first, a page at a time."""
        try:
            start = int(params.cursor or 0)
        except ValueError:
            start = -1
        if start < 0:
            raise AcpError(INVALID_PARAMS, f"Unknown cursor {params.cursor!r}; leave it out.")
        summaries = [
            summary
            for summary in list_sessions(self._runtime.home)
            if not summary.problem
            and summary.cwd
            and (params.cwd is None or summary.cwd == os.path.normpath(params.cwd))
        ]
        summaries.sort(key=lambda summary: summary.updated_at, reverse=True)
        page = summaries[start : start + PAGE]
        result: JsonObject = {
            "sessions": [
                {
                    "sessionId": summary.id,
                    "cwd": summary.cwd,
                    "updatedAt": summary.updated_at,
                    **({"title": summary.title} if summary.title else {}),
                }
                for summary in page
            ]
        }
        if start + PAGE < len(summaries):
            result["nextCursor"] = str(start + PAGE)
        return result

    async def close(self, session_id: str) -> None:
        """Close an open session; it stays on disk."""
        opened = self.find(session_id)
        del self._open[session_id]
        await opened.editor.close()

    async def delete(self, session_id: str) -> None:
        """Move a session to the trash; an unknown session is deleted already."""
        from trimtab.session.archive import Archive

        if session_id in self._open:
            await self.close(session_id)
        if session_id and self._runtime.store.exists(session_id):
            Archive(self._env).delete(session_id)

    async def close_all(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._models is not None:
            self._models.close()
        closing = [self._close_quietly(session_id) for session_id in tuple(self._open)]
        await asyncio.gather(*closing)

    async def _close_quietly(self, session_id: str) -> None:
        with suppress(TrimtabError, OSError):
            await self.close(session_id)


def describe_server(server: McpServer) -> JsonObject:
    """Return a client's MCP server as the runtime configures servers."""
    if server.type == "stdio" and server.command:
        return {
            "type": "local",
            "command": server.command,
            "args": list(server.args),
            "env": {variable.name: variable.value for variable in server.env},
            "tools": ["*"],
        }
    if server.type == "http" and server.url:
        headers = {header.name: header.value for header in server.headers}
        return {"type": "http", "url": server.url, "headers": headers, "tools": ["*"]}
    if server.type in ("stdio", "http"):
        field = "command" if server.type == "stdio" else "url"
        raise AcpError(INVALID_PARAMS, f"The MCP server {server.name!r} has no {field}.")
    raise AcpError(
        INVALID_PARAMS,
        f"MCP servers of type {server.type!r} are not supported; use stdio or http.",
    )
