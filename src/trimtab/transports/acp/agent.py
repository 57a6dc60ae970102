"""The methods of the protocol that the agent answers."""

import asyncio
import sys
import traceback
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.contracts.errors import SessionInUse, SessionNotFound, TrimtabError
from trimtab.contracts.events.envelope import Event, JsonObject
from trimtab.contracts.options import SessionOptions
from trimtab.host.loading import LoadRuntime, load_runtime
from trimtab.transports.acp.connection import Connection
from trimtab.transports.acp.protocol import (
    FAILED,
    INVALID_PARAMS,
    INVALID_REQUEST,
    NOT_FOUND,
    PROTOCOL_VERSION,
    UNKNOWN_METHOD,
    UNREADABLE,
    AcpError,
    Then,
)
from trimtab.transports.acp.schema import (
    CancelRequest,
    ClientCapabilities,
    Initialize,
    ListSessions,
    NewSession,
    PromptParams,
    SessionParams,
    SetConfigOption,
    SetMode,
    StoredSession,
)
from trimtab.version import __version__

if TYPE_CHECKING:
    from trimtab.runtime.live import LiveSession
    from trimtab.transports.acp.sessions import EditorSessions

CAPABILITIES: JsonObject = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
    "mcpCapabilities": {"http": True, "sse": False},
    "sessionCapabilities": {
        "list": {},
        "resume": {},
        "close": {},
        "delete": {},
        "fork": {},
        "additionalDirectories": {},
    },
}

Observer = Callable[[Event, bytes], None]
Handler = Callable[["EditorAgent", Any], Awaitable[Any]]


class EditorAgent:
    """Answers one client. The runtime is imported with the first session."""

    def __init__(
        self,
        env: Mapping[str, str],
        options: SessionOptions,
        observe: Observer | None = None,
        on_open: "Callable[[LiveSession], None] | None" = None,
        *,
        may_ask: bool = True,
        load: LoadRuntime = load_runtime,
    ) -> None:
        self._env = env
        self._load = load
        self._options = options
        self._observe = observe
        self._may_ask = may_ask
        self._on_open = on_open
        self.ended = asyncio.Event()
        self.connection = Connection(self.answer, self.on_notification, self.ended.set)
        self._capabilities: ClientCapabilities | None = None
        self._client_name = ""
        self._sessions: EditorSessions | None = None

    @property
    def sessions(self) -> "EditorSessions":
        if self._sessions is None:
            from trimtab.transports.acp.sessions import EditorSessions

            self._sessions = EditorSessions(
                self.connection,
                self._env,
                self._options,
                self._observe,
                self._load(self._env, self._on_open),
                may_ask=self._may_ask,
            )
        self._sessions.capabilities = self._capabilities or ClientCapabilities()
        self._sessions.client_name = self._client_name
        return self._sessions

    async def answer(self, method: str, raw: msgspec.Raw) -> Any:
        """Handle a request. Raises only `AcpError`, or `CancelledError` if it is cancelled."""
        if method not in METHODS:
            raise AcpError(UNKNOWN_METHOD, f"Unknown method {method!r}.")
        if self._capabilities is None and method != "initialize":
            raise AcpError(INVALID_REQUEST, f"{method} came before initialize; send that first.")
        shape, handler = METHODS[method]
        try:
            params = msgspec.json.decode(raw, type=shape)
        except UNREADABLE as error:
            raise AcpError(INVALID_PARAMS, f"Invalid parameters of {method}: {error}.") from None
        try:
            return await handler(self, params)
        except (SessionNotFound, SessionInUse) as error:
            code = NOT_FOUND if isinstance(error, SessionNotFound) else FAILED
            raise AcpError(code, error.message) from None
        except TrimtabError as error:
            raise AcpError(FAILED, error.message) from None
        except OSError as error:
            where = f" ({error.filename})" if error.filename else ""
            raise AcpError(FAILED, f"{error.strerror or error}{where}.") from None
        except AcpError:
            raise
        except Exception as error:  # a bug must end this request, not the process
            self._log_bug(error)
            name = type(error).__name__
            raise AcpError(FAILED, f"Internal error ({name}: {error}).") from error

    def on_notification(self, method: str, raw: msgspec.Raw) -> None:
        """Handle a notification. Unknown ones, and those about unknown things, are ignored."""
        try:
            if method == "session/cancel":
                params = msgspec.json.decode(raw, type=SessionParams)
                if self._sessions is not None:
                    self._sessions.find(params.session_id).editor.cancel()
            elif method == "$/cancel_request":
                self.connection.cancel_request(
                    msgspec.json.decode(raw, type=CancelRequest).request_id
                )
        except (*UNREADABLE, AcpError):
            return

    async def close(self) -> None:
        """Close all sessions, then the connection."""
        if self._sessions is not None:
            await self._sessions.close_all()
        await self.connection.finish()

    def _log_bug(self, error: BaseException) -> None:
        if "TRIMTAB_DEBUG" in self._env:
            traceback.print_exception(error, file=sys.stderr)

    async def initialize(self, params: Initialize) -> Then:
        self._capabilities = params.client_capabilities or ClientCapabilities()
        if params.client_info is not None:
            self._client_name = params.client_info.name
        result = {
            "protocolVersion": PROTOCOL_VERSION,
            "agentCapabilities": CAPABILITIES,
            "authMethods": [],
            "agentInfo": {"name": "trimtab", "title": "Trimtab", "version": __version__},
        }
        return Then(result, self._prepare)

    def _prepare(self) -> None:
        """Import the runtime once the answer is written, while the client prepares a session."""
        loop = asyncio.get_running_loop()
        loop.call_later(0.001, lambda: self.sessions)

    async def new_session(self, params: NewSession) -> Then:
        return await self.sessions.create(params)

    async def load_session(self, params: StoredSession) -> Then:
        return await self.sessions.load(params)

    async def resume_session(self, params: StoredSession) -> Then:
        return await self.sessions.resume(params)

    async def fork_session(self, params: StoredSession) -> Then:
        return await self.sessions.fork(params)

    async def list_sessions(self, params: ListSessions) -> JsonObject:
        return self.sessions.list(params)

    async def close_session(self, params: SessionParams) -> JsonObject:
        await self.sessions.close(params.session_id)
        return {}

    async def delete_session(self, params: SessionParams) -> JsonObject:
        await self.sessions.delete(params.session_id)
        return {}

    async def prompt(self, params: PromptParams) -> JsonObject:
        from trimtab.transports.acp.prompts import read_prompt

        opened = self.sessions.find(params.session_id)
        reason = await opened.editor.prompt(read_prompt(params.prompt))
        opened.send_changes()
        return {"stopReason": reason}

    async def set_mode(self, params: SetMode) -> JsonObject:
        opened = self.sessions.find(params.session_id)
        opened.settings.set_mode(params.mode_id)
        return {}

    async def set_config_option(self, params: SetConfigOption) -> JsonObject:
        opened = self.sessions.find(params.session_id)
        await opened.settings.change(params.config_id, params.value)
        opened.send_changes()
        return {"configOptions": opened.settings.describe_options()}


METHODS: Mapping[str, tuple[type[msgspec.Struct], Handler]] = {
    "initialize": (Initialize, EditorAgent.initialize),
    "session/new": (NewSession, EditorAgent.new_session),
    "session/load": (StoredSession, EditorAgent.load_session),
    "session/resume": (StoredSession, EditorAgent.resume_session),
    "session/fork": (StoredSession, EditorAgent.fork_session),
    "session/list": (ListSessions, EditorAgent.list_sessions),
    "session/close": (SessionParams, EditorAgent.close_session),
    "session/delete": (SessionParams, EditorAgent.delete_session),
    "session/prompt": (PromptParams, EditorAgent.prompt),
    "session/set_mode": (SetMode, EditorAgent.set_mode),
    "session/set_config_option": (SetConfigOption, EditorAgent.set_config_option),
}
"""The methods we advertise or must have; every other is refused as unknown."""
