"""MCP servers as they are configured. This version does not connect to them, and says so."""

import os
from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.contracts.customization import McpServer
from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.runtime.described import NOT_CONNECTED, describe_server, server_source
from trimtab.runtime.options import SessionOptions
from trimtab.runtime.overview import gather
from trimtab.runtime.user_servers import UserServers
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing

methods = Methods()


class Name(msgspec.Struct):
    name: str


class Names(msgspec.Struct):
    names: tuple[str, ...]


class Configuration(msgspec.Struct):
    name: str
    config: dict[str, Any]


class Where(msgspec.Struct, rename="camel"):
    working_directory: str | None = None


class Server(msgspec.Struct, rename="camel"):
    server_name: str


@methods.on("session.mcp.list")
async def list_servers(call: Call, params: Nothing) -> JsonObject:
    servers = _servers(call)
    listed = [describe_server(one) for one in servers.values()]
    listed += [
        {"name": name, "status": "failed", "source": "user", "error": NOT_CONNECTED}
        for name in call.session.settings.get("mcp_servers") or ()
        if name not in servers
    ]
    return {"servers": listed}


@methods.on("session.mcp.isServerRunning", Server)
async def is_running(call: Call, params: Server) -> JsonObject:
    return {"running": False}


@methods.on("session.mcp.listTools", Server)
async def list_tools(call: Call, params: Server) -> JsonObject:
    raise UsageError(f"{params.server_name} has no tools yet: {NOT_CONNECTED}.")


@methods.on("session.mcp.reload")
async def reload_servers(call: Call, params: Nothing) -> JsonObject:
    call.session.live.controls.reload()
    return {}


@methods.on("mcp.discover", Where)
async def discover(call: Call, params: Where) -> JsonObject:
    runtime = call.server.runtime
    options = SessionOptions(cwd=params.working_directory or os.getcwd())
    servers = gather(runtime.env, options).servers.servers
    return {
        "servers": [
            {
                "name": one.name,
                "type": "stdio" if one.type == "local" else one.type,
                "source": server_source(one),
                "enabled": one.enabled,
            }
            for one in servers.values()
        ]
    }


@methods.on("mcp.config.list")
async def list_configured(call: Call, params: Nothing) -> JsonObject:
    return {"servers": _own(call).entries()}


@methods.on("mcp.config.add", Configuration)
async def add(call: Call, params: Configuration) -> None:
    _check(params)
    _own(call).add(params.name, params.config)


@methods.on("mcp.config.update", Configuration)
async def update(call: Call, params: Configuration) -> None:
    _check(params)
    _own(call).update(params.name, params.config)


@methods.on("mcp.config.remove", Name)
async def remove(call: Call, params: Name) -> None:
    _own(call).remove(params.name)


@methods.on("mcp.config.enable", Names)
async def enable(call: Call, params: Names) -> None:
    _own(call).switch(params.names, enabled=True)


@methods.on("mcp.config.disable", Names)
async def disable(call: Call, params: Names) -> None:
    _own(call).switch(params.names, enabled=False)


@methods.on("mcp.config.reload")
async def reload_configured(call: Call, params: Nothing) -> None:
    """Files are read when they are needed; open sessions look at them before each prompt."""


def _own(call: Call) -> UserServers:
    return UserServers(call.server.runtime.home)


def _check(params: Configuration) -> None:
    if not params.name.strip():
        raise UsageError("A server needs a name; give it one.")
    if not (params.config.get("command") or params.config.get("url")):
        raise UsageError(f"The server {params.name!r} has neither a command nor a url; name one.")


def _servers(call: Call) -> Mapping[str, McpServer]:
    custom = call.session.live.controls.place.customizations
    return custom.servers.servers if custom else {}


class EnvValues(msgspec.Struct):
    mode: str


class HostContext(msgspec.Struct):
    context: JsonObject


NO_HOST = "No MCP host initialized: servers are listed in this version, and not connected."


@methods.on("session.mcp.enable", Server)
async def enable_server(call: Call, params: Server) -> JsonObject:
    raise UsageError(NO_HOST)


@methods.on("session.mcp.disable", Server)
async def disable_server(call: Call, params: Server) -> JsonObject:
    raise UsageError(NO_HOST)


@methods.on("session.mcp.oauth.login")
async def log_in(call: Call, params: Nothing) -> JsonObject:
    raise UsageError(NO_HOST)


@methods.on("session.mcp.executeSampling")
async def execute_sampling(call: Call, params: Nothing) -> JsonObject:
    raise UsageError(NO_HOST)


@methods.on("session.mcp.cancelSamplingExecution")
async def cancel_sampling(call: Call, params: Nothing) -> JsonObject:
    return {"cancelled": False}


@methods.on("session.mcp.removeGitHub")
async def remove_github(call: Call, params: Nothing) -> JsonObject:
    """GitHub's own server is not among those there are."""
    return {"removed": False}


@methods.on("session.mcp.setEnvValueMode", EnvValues)
async def set_env_values(call: Call, params: EnvValues) -> JsonObject:
    """How values of variables are to be understood; kept for when servers are started."""
    call.session.settings["env_value_mode"] = params.mode
    return {"mode": params.mode}


@methods.on("session.mcp.apps.setHostContext", HostContext)
async def set_host_context(call: Call, params: HostContext) -> JsonObject:
    call.session.settings["mcp_host_context"] = params.context
    return {}


@methods.on("session.mcp.apps.getHostContext")
async def get_host_context(call: Call, params: Nothing) -> JsonObject:
    return {"context": call.session.settings.get("mcp_host_context") or {}}
