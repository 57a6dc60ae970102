"""MCP servers: their configuration, and the servers of a session."""

import asyncio
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.mcp import config_source
from trimtab.customize.github_server import NAME as GITHUB
from trimtab.customize.overview import gather
from trimtab.customize.user_servers import UserServers
from trimtab.mcp.messages import RemoteError
from trimtab.mcp.session_servers import SessionServers
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing

if TYPE_CHECKING:
    from trimtab.mcp.server import ServerConnection

methods = Methods()


class Name(msgspec.Struct):
    name: str


class Names(msgspec.Struct):
    names: tuple[str, ...]


class Configuration(msgspec.Struct):
    name: str
    config: dict[str, Any]


class Folder(msgspec.Struct, rename="camel"):
    working_directory: str | None = None


class Server(msgspec.Struct, rename="camel"):
    server_name: str


@methods.on("session.mcp.list")
async def list_servers(call: Call, params: Nothing) -> JsonObject:
    """List the servers; connects them, which otherwise happens with the first prompt."""
    servers = _servers(call)
    await servers.start()
    listed: JsonObject = {"servers": servers.describe()}
    states = [
        servers.find(server["name"])
        for server in listed["servers"]
        if server["status"] != "stopped"
    ]
    return listed | {"host": describe_host(states)} if states else listed


def describe_host(states: "Sequence[ServerConnection]") -> JsonObject:
    """Return the servers of a session by status."""

    def named(status: str) -> list[str]:
        return [state.config.name for state in states if state.status == status]

    return {
        "clients": named("connected"),
        "disabledServers": named("disabled"),
        "failedServers": {
            state.config.name: {"message": state.error, "timestamp": state.since}
            for state in states
            if state.status == "failed"
        },
        "filteredServers": [],
        "mcp3pEnabled": True,
        "needsAuthServers": {
            state.config.name: {"timestamp": state.since}
            for state in states
            if state.status == "needs-auth"
        },
        "pendingConnections": named("pending"),
    }


@methods.on("session.mcp.isServerRunning", Server)
async def is_running(call: Call, params: Server) -> JsonObject:
    running = {
        server["name"]: server["status"] == "connected" for server in _servers(call).describe()
    }
    return {"running": running.get(params.server_name, False)}


@methods.on("session.mcp.listTools", Server)
async def list_tools(call: Call, params: Server) -> JsonObject:
    """Return the tools of a server, by the server's own names."""
    await _servers(call).start()
    server = _servers(call).find(params.server_name)
    await server.hurry()
    if server.status != "connected":
        why = server.error or f"its status is {server.status}"
        raise UsageError(f"{params.server_name} is not connected: {why}.")
    return {
        "tools": [
            {"name": tool.name, "description": tool.description, "inputSchema": tool.parameters}
            for tool in server.listing.tools
        ]
    }


class Listing(msgspec.Struct, rename="camel"):
    server_name: str
    cursor: str | None = None


class ResourceAt(msgspec.Struct, rename="camel"):
    server_name: str
    uri: str


class PromptNamed(msgspec.Struct, rename="camel"):
    server_name: str
    prompt_name: str
    arguments: dict[str, str] = {}


async def _list_page(call: Call, params: Listing, method: str, key: str) -> JsonObject:
    more = {} if params.cursor is None else {"cursor": params.cursor}
    answer = await _servers(call).request(params.server_name, method, more)
    found: JsonObject = {key: answer.get(key) or []}
    if isinstance(cursor := answer.get("nextCursor"), str):
        found["nextCursor"] = cursor
    return found


@methods.on("session.mcp.resources.list", Listing)
async def list_resources(call: Call, params: Listing) -> JsonObject:
    return await _list_page(call, params, "resources/list", "resources")


@methods.on("session.mcp.resources.listTemplates", Listing)
async def list_templates(call: Call, params: Listing) -> JsonObject:
    return await _list_page(call, params, "resources/templates/list", "resourceTemplates")


@methods.on("session.mcp.resources.read", ResourceAt)
async def read_resource(call: Call, params: ResourceAt) -> JsonObject:
    answer = await _servers(call).request(params.server_name, "resources/read", {"uri": params.uri})
    return {"contents": answer.get("contents") or []}


@methods.on("session.mcp.prompts.list", Listing)
async def list_prompts(call: Call, params: Listing) -> JsonObject:
    return await _list_page(call, params, "prompts/list", "prompts")


@methods.on("session.mcp.prompts.get", PromptNamed)
async def get_prompt(call: Call, params: PromptNamed) -> JsonObject:
    given = {"name": params.prompt_name, "arguments": params.arguments}
    answer = await _servers(call).request(params.server_name, "prompts/get", given)
    found: JsonObject = {"messages": answer.get("messages") or []}
    if isinstance(text := answer.get("description"), str):
        found["description"] = text
    return found


@methods.on("session.mcp.reload")
async def reload_servers(call: Call, params: Nothing) -> JsonObject:
    """Read the configuration again, and restart servers that changed."""
    call.session.live.controls.reload()
    await _servers(call).reload()
    return {}


@methods.on("session.mcp.enable", Server)
async def enable_server(call: Call, params: Server) -> None:
    await _switch(call, params.server_name, enabled=True)


@methods.on("session.mcp.disable", Server)
async def disable_server(call: Call, params: Server) -> None:
    await _switch(call, params.server_name, enabled=False)


class StartServer(msgspec.Struct, rename="camel"):
    """A server of the session, or with `config` a new one, or another configuration of it."""

    server_name: str
    config: dict[str, Any] | None = None


@methods.on("session.mcp.startServer", StartServer)
async def start_server(call: Call, params: StartServer) -> None:
    await _configure(call, params)
    await _switch(call, params.server_name, enabled=True)
    await _require_connected(call, params.server_name)


@methods.on("session.mcp.stopServer", Server)
async def stop_server(call: Call, params: Server) -> None:
    """Stop a server; to stop one that does not run is not an error."""
    await _servers(call).start()
    if _servers(call).has(params.server_name):
        await _switch(call, params.server_name, enabled=False)


@methods.on("session.mcp.restartServer", StartServer)
async def restart_server(call: Call, params: StartServer) -> None:
    await _configure(call, params)
    await _servers(call).restart(params.server_name)
    await _require_connected(call, params.server_name)


async def _configure(call: Call, params: StartServer) -> None:
    if params.config is not None:
        call.session.live.controls.add_servers({params.server_name: params.config})
    await _servers(call).start()


async def _switch(call: Call, name: str, *, enabled: bool) -> None:
    """Switch a server of the session, or keep the choice for one that is added later."""
    servers = _servers(call)
    await servers.start()
    if not servers.has(name):
        controls = call.session.live.controls
        others = [other for other in controls.options.customize.disabled_servers if other != name]
        disabled = tuple(others) if enabled else (*others, name)
        controls.change_options(customize=controls.with_customize(disabled_servers=disabled))
        return
    await servers.switch(name, enabled=enabled)
    if enabled:
        await servers.find(name).hurry()


async def _require_connected(call: Call, name: str) -> None:
    """Raise `UsageError` if a server failed or wants a sign-in; a slow one may still connect."""
    server = _servers(call).find(name)
    await server.hurry()
    if server.status == "needs-auth":
        raise UsageError(
            f'MCP server "{name}" requires authentication; sign in with session.mcp.oauth.login.'
        )
    if server.status == "failed":
        raise UsageError(f"The MCP server {name} could not be started: {server.error}.")


@methods.on("mcp.discover", Folder)
async def discover(call: Call, params: Folder) -> JsonObject:
    runtime = call.server.runtime
    cwd = params.working_directory or os.getcwd()
    options = msgspec.structs.replace(call.server.defaults, cwd=cwd)
    servers = gather(runtime.env, options).servers.servers
    return {
        "servers": [
            {
                "name": server.name,
                "type": "stdio" if server.type == "local" else server.type,
                "source": config_source(server),
                "enabled": server.enabled,
            }
            for server in servers.values()
        ]
    }


@methods.on("mcp.config.list")
async def list_configured(call: Call, params: Nothing) -> JsonObject:
    return {"servers": _user_servers(call).entries()}


@methods.on("mcp.config.add", Configuration)
async def add(call: Call, params: Configuration) -> None:
    _check(params)
    _user_servers(call).add(params.name, params.config)


@methods.on("mcp.config.update", Configuration)
async def update(call: Call, params: Configuration) -> None:
    _check(params)
    _user_servers(call).update(params.name, params.config)


@methods.on("mcp.config.remove", Name)
async def remove(call: Call, params: Name) -> None:
    _user_servers(call).remove(params.name)


@methods.on("mcp.config.enable", Names)
async def enable(call: Call, params: Names) -> None:
    _user_servers(call).switch(params.names, enabled=True)


@methods.on("mcp.config.disable", Names)
async def disable(call: Call, params: Names) -> None:
    _user_servers(call).switch(params.names, enabled=False)


@methods.on("mcp.config.reload")
async def reload_configured(call: Call, params: Nothing) -> None:
    """Do nothing: files are read when needed, by open sessions before each prompt."""


def _user_servers(call: Call) -> UserServers:
    return UserServers(call.server.runtime.home)


def _check(params: Configuration) -> None:
    if not params.name.strip():
        raise UsageError("MCP server name cannot be empty; set name.")
    if not (params.config.get("command") or params.config.get("url")):
        raise UsageError(
            f"The server {params.name!r} has neither a command nor a url; set one of them."
        )


def _servers(call: Call) -> SessionServers:
    return call.session.live.controls.servers


class EnvValues(msgspec.Struct):
    mode: str


class SignInTo(msgspec.Struct, rename="camel"):
    server_name: str
    force_reauth: bool = False


@methods.on("session.mcp.oauth.login", SignInTo)
async def log_in(call: Call, params: SignInTo) -> JsonObject:
    """Begin to sign in; the client opens the address, and the server then connects by itself."""
    await _servers(call).start()
    address = await _servers(call).log_in(params.server_name, anew=params.force_reauth)
    return {"authorizationUrl": address} if address else {}


class PendingAnswer(msgspec.Struct, rename="camel"):
    request_id: str
    result: JsonObject


@methods.on("session.mcp.oauth.handlePendingRequest", PendingAnswer)
async def handle_sign_in(call: Call, params: PendingAnswer) -> JsonObject:
    """Give a server the token that a client obtained; False if nobody waits for it any more."""
    return {"success": call.session.questions.answer(params.request_id, params.result)}


class PendingRequest(msgspec.Struct, rename="camel"):
    request_id: str


@methods.on("session.mcp.oauth.respond", PendingRequest)
async def respond_to_sign_in(call: Call, params: PendingRequest) -> JsonObject:
    """Let a server try again with the sign-in it has; False if nobody waits for an answer."""
    return {"success": call.session.questions.answer(params.request_id, {"kind": "cancelled"})}


class SignInChanged(msgspec.Struct, rename="camel"):
    server_name: str | None = None


@methods.on("session.mcp.oauth.authenticationStateChanged", SignInChanged)
async def note_sign_in(call: Call, params: SignInChanged) -> None:
    """Connect servers that wait for a sign-in again: somebody has signed in."""
    call.session.live.controls.servers.retry_sign_ins()


@methods.on("session.mcp.headers.handlePendingHeadersRefreshRequest", PendingAnswer)
async def handle_headers(call: Call, params: PendingAnswer) -> JsonObject:
    """Give a server the headers that a client renewed; False if nobody waits for them."""
    return {"success": call.session.questions.answer(params.request_id, params.result)}


class SamplingExecution(msgspec.Struct, rename="camel"):
    request_id: str
    server_name: str
    request: JsonObject
    mcp_request_id: Any = None


@methods.on("session.mcp.executeSampling", SamplingExecution)
async def execute_sampling(call: Call, params: SamplingExecution) -> JsonObject:
    """Make the model call that a server asked for, on behalf of the client that approved it."""
    running = call.session.samplings
    if params.request_id in running:
        raise UsageError(f"The request {params.request_id} is running already; use another id.")
    sampling = call.session.live.controls.sampling
    task = asyncio.ensure_future(sampling.call(params.server_name, params.request))
    running[params.request_id] = task
    try:
        await asyncio.wait((task,))
        if task.cancelled():
            return {"action": "cancelled"}
        return {"action": "success", "result": task.result()}
    except RemoteError as error:
        return {"action": "failure", "error": str(error)}
    finally:
        task.cancel()
        del running[params.request_id]


class Execution(msgspec.Struct, rename="camel"):
    request_id: str


@methods.on("session.mcp.cancelSamplingExecution", Execution)
async def cancel_sampling(call: Call, params: Execution) -> JsonObject:
    task = call.session.samplings.get(params.request_id)
    return {"cancelled": task is not None and task.cancel()}


@methods.on("session.mcp.removeGitHub")
async def remove_github(call: Call, params: Nothing) -> JsonObject:
    """Stop GitHub's own server in this session; False if it does not run."""
    servers = _servers(call)
    known = any(
        server["name"] == GITHUB and server["status"] not in ("disabled", "stopped")
        for server in servers.describe()
    )
    if known:
        await _switch(call, GITHUB, enabled=False)
    return {"removed": known}


@methods.on("session.mcp.setEnvValueMode", EnvValues)
async def set_env_values(call: Call, params: EnvValues) -> JsonObject:
    """Store how variables are to be read; values from clients are taken literally."""
    call.session.settings["env_value_mode"] = params.mode
    return {"mode": params.mode}
