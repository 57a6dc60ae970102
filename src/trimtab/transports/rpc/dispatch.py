"""Finds the handler of a method and calls it with typed parameters."""

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from trimtab.contracts.errors import TrimtabError
from trimtab.transports.rpc.protocol import (
    FAILED,
    INVALID_PARAMS,
    TASK_FAILURES,
    UNKNOWN_METHOD,
    NotAvailable,
    RpcError,
)

if TYPE_CHECKING:
    from trimtab.host.hosted import HostedSession
    from trimtab.host.participants import Participant
    from trimtab.transports.rpc.peer import Peer
    from trimtab.transports.rpc.server import Server

NAMESPACES = {
    "account": "account",
    "auth": "account",
    "commands": "commands",
    "hooks": "discovery",
    "managedSettings": "unsupported",
    "models.getBuiltInCatalog": "unsupported",
    "sandbox": "checks",
    "agents": "discovery",
    "agentRegistry": "unsupported",
    "connect": "connection",
    "extensions": "unsupported",
    "instructions": "discovery",
    "llmInference": "inference",
    "mcp": "mcp",
    "models": "model",
    "ping": "connection",
    "plugins": "plugins",
    "registerExtensionLaunchProvider": "unsupported",
    "runtime": "connection",
    "secrets": "sessions",
    "session": "session",
    "session.agent": "agent",
    "session.autopilotObjective": "unsupported",
    "session.canvas": "canvas",
    "session.commands": "commands",
    "session.completions": "completions",
    "session.contentExclusion": "checks",
    "session.customizations": "agent",
    "session.debug": "debug_logs",
    "session.eventLog": "event_log",
    "session.extensions": "unsupported",
    "session.fleet": "fleet",
    "session.gitHubAuth": "account",
    "session.gitHubAuth.lastAuthErrors": "unsupported",
    "session.history": "history",
    "session.instructions": "agent",
    "session.limitPrediction": "unsupported",
    "session.lsp": "unsupported",
    "session.managedSettings": "checks",
    "session.mcp": "mcp",
    "session.mcp.moveLoadingToBackground": "unsupported",
    "session.mcp.apps": "mcp_apps",
    "session.metadata": "metadata",
    "session.metadata.getClientMetadata": "client_metadata",
    "session.metadata.updateClientMetadata": "client_metadata",
    "session.mode": "options",
    "session.model": "model",
    "session.name": "name",
    "session.options": "options",
    "session.permissions": "permissions",
    "session.permissions.configure": "permission_rules",
    "session.permissions.folderTrust": "permission_rules",
    "session.permissions.locations": "permission_rules",
    "session.permissions.modifyRules": "permission_rules",
    "session.plan": "plan",
    "session.plugins": "plugins",
    "session.provider": "model",
    "session.queue": "queue",
    "session.quota": "unsupported",
    "session.remote": "remote",
    "session.sandbox": "unsupported",
    "session.schedule": "schedule",
    "session.shell": "shell",
    "session.skills": "skills",
    "session.tasks": "tasks",
    "session.telemetry": "unsupported",
    "session.tools": "tools",
    "session.ui": "ui",
    "session.usage": "metadata",
    "session.visibility": "unsupported",
    "session.workspaces": "workspaces",
    "sessionFs": "workspaces",
    "sessions": "sessions",
    "sessions.getClientMetadata": "client_metadata",
    "sessions.readPersistedEvents": "event_log",
    "sessions.getRemoteControlStatus": "remote",
    "sessions.startRemoteControl": "remote",
    "sessions.stopRemoteControl": "remote",
    "sessions.transferRemoteControl": "remote",
    "sessions.setRemoteControlSteering": "remote",
    "skills": "discovery",
    "skills.config": "skills",
    "status": "connection",
    "tools": "tools",
    "trimtab.tasks": "tasks",
    "user.settings": "settings",
}
"""Namespace → module in `methods`, imported when a method of it is called."""

H = TypeVar("H", bound=Callable[..., Awaitable[Any]])


class Call(msgspec.Struct, frozen=True):
    """The context of a call. `session_id` comes from the parameters."""

    server: "Server"
    peer: "Peer"
    session_id: str | None

    @property
    def session(self) -> "HostedSession":
        """The session the call is about. Raises `RpcError` if it is not open."""
        return self.server.session(self.session_id)

    @property
    def participant(self) -> "Participant":
        """The caller as a participant of the session; a client may call without having joined."""
        return self.session.participant(self.peer)


Handler = Callable[[Call, Any], Awaitable[Any]]


class Nothing(msgspec.Struct):
    """Parameters of a method that takes none."""


class Methods:
    """The methods of one module."""

    def __init__(self) -> None:
        self.table: dict[str, tuple[Handler, msgspec.json.Decoder[Any]]] = {}

    def on(self, name: str, params: type[msgspec.Struct] = Nothing) -> Callable[[H], H]:
        """Register the function that handles a method. It takes the call and typed parameters."""

        def register(handler: H) -> H:
            self.table[name] = (handler, msgspec.json.Decoder(params))
            return handler

        return register


class _Address(msgspec.Struct, frozen=True, rename="camel"):
    session_id: str | None = None


_address = msgspec.json.Decoder(_Address).decode


def find_method(name: str) -> tuple[Handler, msgspec.json.Decoder[Any]] | None:
    """Return the handler of a method and the decoder of its parameters, or None."""
    namespace = name
    while namespace:
        module = NAMESPACES.get(namespace)
        if module is not None:
            methods: Methods = import_module(f"trimtab.transports.rpc.methods.{module}").methods
            if name in methods.table:
                return methods.table[name]
        namespace = namespace.rpartition(".")[0]
    return None


async def answer(server: "Server", peer: "Peer", name: str, raw: msgspec.Raw) -> Any:
    """Handle a request. Raises only `RpcError`, or `CancelledError` if it is cancelled."""
    try:
        found = find_method(name)
    except Exception as error:  # a module that cannot be imported must not leave a caller waiting
        raise _bug(server, name, error) from error
    if found is None:
        raise RpcError(UNKNOWN_METHOD, f"Unhandled method {name}")
    handler, decoder = found
    try:
        address = _address(raw)
        params = decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RpcError(INVALID_PARAMS, _failure(name, f"Invalid parameters: {error}")) from None
    try:
        if _is_about_session(name):
            server.session(address.session_id)
        return await handler(Call(server, peer, address.session_id), params)
    except RpcError as error:
        raise RpcError(error.code, _failure(name, error.message), error.data) from None
    except (TrimtabError, NotAvailable) as error:
        raise RpcError(FAILED, _failure(name, str(error))) from None
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise RpcError(FAILED, _failure(name, f"{error.strerror or error}{where}")) from None
    except Exception as error:  # a bug must end this request, not the server
        raise _bug(server, name, error) from error


def _bug(server: "Server", name: str, error: Exception) -> RpcError:
    """Log a bug; return the error that tells the client of it."""
    server.log_bug(error)
    return RpcError(FAILED, _failure(name, f"Internal error ({type(error).__name__}: {error})"))


def _is_about_session(name: str) -> bool:
    """Return True for `session.NAMESPACE.METHOD`: all of these are about an open session."""
    return name.startswith("session.") and name.count(".") > 1


def _failure(name: str, message: str) -> str:
    if message == "AUTHENTICATION_FAILED" or message in TASK_FAILURES:
        return message
    return f"Request {name} failed with message: {message}"
