"""Finds MCP servers in the configuration files of every convention; the last source wins."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal

import msgspec

from trimtab.config.jsonc import JsonProblem, read_jsonc
from trimtab.contracts.customization import (
    AgentDefinition,
    McpServer,
    Problem,
    Shadowed,
    Source,
)
from trimtab.customize.expansion import Expansion
from trimtab.customize.places import Places
from trimtab.customize.reading import read_text

TYPES: Mapping[str, Literal["local", "http", "sse"]] = {
    "local": "local",
    "stdio": "local",
    "http": "http",
    "streamable-http": "http",
    "streamableHttp": "http",
    "sse": "sse",
}
PLUGIN_VARIABLES = ("PLUGIN_ROOT", "COPILOT_PLUGIN_ROOT", "CLAUDE_PLUGIN_ROOT")
FILTERS = ("hidden_characters", "markdown", "none")
EXTRA = (
    "deferTools",
    "disableToolCache",
    "slowConnectionThresholdMs",
    "oauthClientId",
    "oauthPublicClient",
    "oauthScopes",
    "oauthGrantType",
    "oidc",
    "auth",
    "oauth",
)
"""Fields that matter when a server is connected to; they are kept as they are."""
NO_EFFECT = {
    "trust": "whether a call is asked about is the person's choice, not the file's",
    "autoApprove": "whether a call is asked about is the person's choice, not the file's",
    "alwaysAllow": "whether a call is asked about is the person's choice, not the file's",
    "envFile": "set the variables in env, or in the environment",
    "dev": "servers are not watched or debugged",
    "gallery": "it is for editors",
    "version": "it is for editors",
    "headersHelper": "no program is run to make headers",
    "startup_timeout_sec": "use timeout",
    "required": "a server that cannot be reached never ends a session",
    "sandboxEnabled": "servers run as set up by the person",
}
_KNOWN = frozenset(
    (
        "type",
        "transport",
        "command",
        "args",
        "cwd",
        "env",
        "env_vars",
        "url",
        "httpUrl",
        "serverUrl",
        "headers",
        "http_headers",
        "bearer_token_env_var",
        "tools",
        "includeTools",
        "enabled_tools",
        "excludeTools",
        "disabled_tools",
        "timeout",
        "tool_timeout_sec",
        "filterMapping",
        "displayName",
        "description",
        "disabled",
        "enabled",
        *EXTRA,
        *NO_EFFECT,
    )
)


class ServerFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that may name servers, under one of some keys; `content` if it was read already."""

    path: str
    source: Source
    keys: tuple[str, ...] = ("mcpServers", "servers")
    content: Any = None
    plugin_root: str = ""


class FoundServers(msgspec.Struct, frozen=True):
    """Servers by name, those that were replaced by a later source, and what is wrong."""

    servers: dict[str, McpServer] = {}
    shadowed: tuple[Shadowed, ...] = ()
    problems: tuple[Problem, ...] = ()


def server_files(places: Places) -> list[ServerFile]:
    """Where servers are configured, the least important first."""
    user, config = places.user, places.home.config
    files = [
        ServerFile(
            path=os.path.join(user, ".codex/config.toml"), source="codex", keys=("mcp_servers",)
        ),
        ServerFile(path=os.path.join(user, ".gemini/settings.json"), source="gemini"),
        ServerFile(path=os.path.join(user, ".cursor/mcp.json"), source="cursor"),
        ServerFile(path=os.path.join(user, ".claude.json"), source="claude"),
        ServerFile(path=os.path.join(config, "mcp-config.json"), source="user"),
    ]
    if not places.trusted:
        return files
    for folder in dict.fromkeys((places.root, places.cwd)):
        codex = os.path.join(folder, ".codex/config.toml")
        files += [
            ServerFile(path=codex, source="codex", keys=("mcp_servers",)),
            ServerFile(path=os.path.join(folder, ".gemini/settings.json"), source="gemini"),
            ServerFile(path=os.path.join(folder, ".cursor/mcp.json"), source="cursor"),
            ServerFile(path=workspace_file(folder), source="repository"),
            ServerFile(path=os.path.join(folder, ".vscode/mcp.json"), source="repository"),
        ]
    return files


def agent_servers(agent: AgentDefinition) -> ServerFile:
    """The servers an agent's own file brings; they are used while it is the main agent."""
    content = {"mcpServers": dict(agent.mcp_servers)}
    return ServerFile(path=agent.path, source=agent.source, content=content)


def workspace_file(folder: str) -> str:
    """`.mcp.json`, or `.github/mcp.json` where there is no such file."""
    first = os.path.join(folder, ".mcp.json")
    return first if os.path.exists(first) else os.path.join(folder, ".github", "mcp.json")


def find_servers(
    files: Sequence[ServerFile],
    places: Places,
    flags: Sequence[str] = (),
    disabled: Collection[str] = (),
) -> FoundServers:
    """The servers of some files and, last, of `--additional-mcp-config`."""
    search = _Search(places, disabled)
    for file in files:
        if os.path.exists(file.path):
            search.read_file(file)
    for number, text in enumerate(flags, 1):
        search.read_flag(text, number)
    return FoundServers(search.servers, tuple(search.shadowed), tuple(search.problems))


class _Search:
    def __init__(self, places: Places, disabled: Collection[str]) -> None:
        self._places = places
        self._disabled = disabled
        self.servers: dict[str, McpServer] = {}
        self.shadowed: list[Shadowed] = []
        self.problems: list[Problem] = []

    def read_file(self, file: ServerFile) -> None:
        if file.content is not None:
            self._enter_all(file.content, file)
            return
        text, problems = read_text(file.path, 16 * 1024 * 1024)
        self.problems += problems
        if not text.strip():
            return
        try:
            content = parse_config(file.path, text)
        except JsonProblem as error:
            message = f"{error}; no server of this file is used"
            self.problems.append(Problem(message=message, file=file.path, line=error.line))
            return
        self._enter_all(content, file)

    def read_flag(self, text: str, number: int) -> None:
        if text.startswith("@"):
            path = os.path.join(self._places.cwd, self._places.expand(text[1:]))
            self.read_file(ServerFile(path=path, source="flag"))
            return
        name = f"--additional-mcp-config ({number})"
        try:
            content = read_jsonc(text.encode("utf-8", "surrogateescape"))
        except JsonProblem as error:
            self.problems.append(Problem(message=str(error), file=name, line=error.line))
            return
        self._enter_all(content, ServerFile(path=name, source="flag"))

    def _enter_all(self, content: Any, file: ServerFile) -> None:
        named: Any = None
        if isinstance(content, dict):
            named = next((content[key] for key in file.keys if key in content), {})
        if not isinstance(named, dict):
            message = f"it has no object {file.keys[0]} with servers"
            self.problems.append(Problem(message=message, file=file.path))
            return
        for name, entry in named.items():
            server = self._read_server(str(name), entry, file)
            if server is None:
                continue
            if (before := self.servers.get(server.name)) is not None:
                why = "the source that is read last wins"
                self.shadowed.append(
                    Shadowed(before.name, before.file, before.source, server.file, why)
                )
            self.servers[server.name] = server

    def _read_server(self, name: str, entry: Any, file: ServerFile) -> McpServer | None:
        def note(message: str, *, effect: bool = False) -> None:
            text = f"server {name}: {message}"
            self.problems.append(Problem(message=text, file=file.path, note=not effect))

        if not isinstance(entry, dict):
            note("it is no object and is left out", effect=True)
            return None
        if token := entry.get("bearer_token_env_var"):
            headers = entry.get("http_headers") or {}
            entry = {**entry, "http_headers": {**headers, "Authorization": f"Bearer ${{{token}}}"}}
        env = {**self._places.env, **dict.fromkeys(PLUGIN_VARIABLES, file.plugin_root)}
        expansion = Expansion(env if file.plugin_root else self._places.env, self._places.root)
        values: dict[str, Any] = {key: expansion.fill(value) for key, value in entry.items()}
        for variable in expansion.missing:
            note(f"the variable {variable} is not set", effect=True)
        for field in values:
            if field in NO_EFFECT:
                note(f"{field} has no effect: {NO_EFFECT[field]}")
            elif field not in _KNOWN:
                note(f"the field {field} is not known and has no effect")
        kind = _kind(values)
        if kind is None:
            note("it has neither a command nor a url, or a type that is not known", effect=True)
            return None
        enabled = (
            name not in self._disabled
            and not values.get("disabled")
            and values.get("enabled", True)
        )
        try:
            return _build(name, kind, values, file, enabled=bool(enabled), note=note)
        except msgspec.ValidationError as error:
            note(f"{error}; it is left out", effect=True)
            return None


def _kind(values: Mapping[str, Any]) -> Literal["local", "http", "sse"] | None:
    given = values.get("type") or values.get("transport")
    if isinstance(given, str):
        kind = TYPES.get(given)
    else:
        kind = "local" if values.get("command") else "http"
        if values.get("url") and not given and str(values["url"]).rstrip("/").endswith("/sse"):
            kind = "sse"
    needed = values.get("command") if kind == "local" else _url(values)
    return kind if needed else None


def _url(values: Mapping[str, Any]) -> str:
    return str(values.get("url") or values.get("httpUrl") or values.get("serverUrl") or "")


def _build(
    name: str,
    kind: Literal["local", "http", "sse"],
    values: Mapping[str, Any],
    file: ServerFile,
    *,
    enabled: bool,
    note: Callable[[str], None],
) -> McpServer:
    headers = {**(values.get("headers") or {}), **(values.get("http_headers") or {})}
    tools = (
        values.get("tools") or values.get("includeTools") or values.get("enabled_tools") or ["*"]
    )
    if values.get("excludeTools") or values.get("disabled_tools"):
        note("excluding tools has no effect: list the wanted ones in tools")
    filters = values.get("filterMapping")
    if isinstance(filters, str) and filters not in FILTERS:
        note(f"filterMapping is one of {', '.join(FILTERS)}, not {filters}")
        filters = None
    seconds = values.get("tool_timeout_sec")
    timeout = int(seconds * 1000) if isinstance(seconds, int | float) else values.get("timeout")
    fields = {
        "name": name,
        "type": kind,
        "source": file.source,
        "file": file.path,
        "command": values.get("command") or "",
        "args": values.get("args") or [],
        "cwd": values.get("cwd"),
        "env": values.get("env") or {},
        "url": _url(values),
        "headers": headers,
        "tools": tools,
        "timeout": timeout,
        "filter_mapping": filters,
        "display_name": values.get("displayName") or "",
        "enabled": enabled,
        "extra": {field: values[field] for field in EXTRA if field in values},
    }
    return msgspec.convert(fields, McpServer)


def parse_config(path: str, text: str) -> Any:
    """What a JSON or TOML file holds. Raises `JsonProblem`."""
    if not path.endswith(".toml"):
        return read_jsonc(text.encode("utf-8", "surrogateescape"))
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise JsonProblem(f"invalid TOML: {error}", 0) from None
