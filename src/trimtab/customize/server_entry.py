"""Reads an MCP server from a configuration file, under the field names of every vendor."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

from trimtab.contracts.customization import McpServer, Problem, Source
from trimtab.contracts.mcp import TRUSTED_SOURCES
from trimtab.contracts.secrets import SHORTEST_NAMED
from trimtab.customize.expansion import Expansion
from trimtab.customize.parsing import find_line

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
SIGN_IN = (
    *("oauthClientId", "oauthPublicClient", "oauthScopes", "oauthGrantType", "auth", "oauth"),
    "scopes",
)
SECRET_FIELDS = ("clientSecret", "CLIENT_SECRET", "privateKey", "idToken")
OTHER_SIGN_IN = ("oidc", "authProviderType", "targetAudience", "targetServiceAccount")
EXTRA = ("slowConnectionThresholdMs", "deferTools", "disableToolCache", "logLevel", *SIGN_IN)
"""Fields that are passed on unchanged."""
NO_EFFECT = {
    **dict.fromkeys(OTHER_SIGN_IN, "sign in with `trimtab mcp login`, or put a token into headers"),
    "oauth_resource": "the server's metadata names the resource",
    "trust": "whether a call is asked about is the person's choice, not the file's",
    "autoApprove": "whether a call is asked about is the person's choice, not the file's",
    "alwaysAllow": "whether a call is asked about is the person's choice, not the file's",
    "envFile": "set the variables in env, or in the environment",
    "dev": "servers are not watched or debugged",
    "gallery": "it is for editors",
    "version": "it is for editors",
    "headersHelper": "no program is run to make headers",
    "startup_timeout_sec": "use timeout",
    "startup_timeout_ms": "use timeout",
    "required": "a server that cannot be reached never ends a session",
    "sandboxEnabled": "servers run as set up by the person",
    "sandbox": "servers run as set up by the person",
    "default_tools_approval_mode": "rules are given with --allow-tool and --deny-tool",
    "supports_parallel_tool_calls": "how calls run is not the file's choice",
    "environment_id": "servers run on this machine",
    "alwaysLoad": "all tools are offered from the start",
    "extensionName": "extensions are not installed here",
}
FILE_NO_EFFECT = {
    "inputs": "nobody is asked for values; use variables of the environment",
    "sandbox": "servers run as set up by the person",
}
"""Fields next to the servers, in files that are for servers only."""
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
        "env_http_headers",
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
        "name",
        "description",
        "disabled",
        "enabled",
        *EXTRA,
        *NO_EFFECT,
    )
)


class ServerFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that may configure servers under one of `keys`. `content` is set if it was read.

    `settings` marks files with other settings, too; `project` is the key of a folder in them.
    """

    path: str
    source: Source
    keys: tuple[str, ...] = ("mcpServers", "servers")
    content: Any = None
    plugin_root: str = ""
    settings: bool = False
    project: str = ""
    literal: bool = False
    """True if variables in its values are not expanded."""


class ServerEntry:
    """Reads one entry and collects its problems."""

    def __init__(self, name: str, file: ServerFile, text: str) -> None:
        """`text` is the content of the file; problems take their line numbers from it."""
        self._name = name
        self._file = file
        self._text = text
        self.problems: list[Problem] = []

    def read(
        self, entry: Any, env: Mapping[str, str], folder: str, *, disabled: bool
    ) -> McpServer | None:
        if not self._name.isprintable():
            self._note("its name has control characters, and it is left out", effect=True)
            return None
        if not isinstance(entry, dict):
            self._note("it is not an object and is left out", effect=True)
            return None
        values = dict(entry) if self._file.literal else self._fill(entry, env, folder)
        for field in values:
            if field in NO_EFFECT:
                self._note(f"{field} has no effect: {NO_EFFECT[field]}", field=field)
            elif field not in _KNOWN:
                self._note(f"the field {field} is not known and has no effect", field=field)
        kind = _kind(values)
        if self._file.source == "gemini" and values.get("url") and not values.get("httpUrl"):
            kind = kind and "sse"
        if kind is None:
            reason = "it has neither a command nor a url, or a type that is not known"
            self._note(reason, effect=True)
            return None
        enabled = not disabled and not values.get("disabled") and values.get("enabled", True)
        try:
            server = self._build(kind, values, env, enabled=bool(enabled))
            if self._file.source in TRUSTED_SOURCES:
                return server  # nobody asks whether it has changed
            return msgspec.structs.replace(server, digest=_digest(entry))
        except msgspec.ValidationError as error:
            self._note(f"{error}; it is left out", effect=True)
            return None

    def _fill(
        self, entry: Mapping[str, Any], env: Mapping[str, str], folder: str
    ) -> dict[str, Any]:
        root = self._file.plugin_root
        known = {**env, **dict.fromkeys(PLUGIN_VARIABLES, root)} if root else env
        expansion = Expansion(known, folder)
        values = {str(key): expansion.fill(value) for key, value in entry.items()}
        for variable in expansion.missing:
            self._note(f"the variable {variable} is not set", effect=True)
        return values

    def _build(
        self,
        kind: Literal["local", "http", "sse"],
        values: Mapping[str, Any],
        env: Mapping[str, str],
        *,
        enabled: bool,
    ) -> McpServer:
        tools = values.get("tools")
        if isinstance(tools, dict):
            reason = "rules are given with --allow-tool and --deny-tool"
            self._note(f"tools has no effect: {reason}", field="tools")
            tools = None
        for field in ("includeTools", "enabled_tools"):
            tools = values.get(field) if tools is None else tools
        seconds = values.get("tool_timeout_sec")
        timeout = int(seconds * 1000) if isinstance(seconds, int | float) else values.get("timeout")
        fields = {
            "name": self._name,
            "type": kind,
            "source": self._file.source,
            "file": self._file.path,
            "command": values.get("command") or "",
            "args": values.get("args") or [],
            "cwd": values.get("cwd"),
            "env": {**self._forwarded(values, env), **_object(values, "env")},
            "url": _url(values),
            "headers": self._headers(values, env),
            "tools": ["*"] if tools is None else tools,
            "excluded_tools": values.get("excludeTools") or values.get("disabled_tools") or [],
            "timeout": timeout,
            "filter_mapping": self._filters(values),
            "display_name": values.get("displayName") or values.get("name") or "",
            "enabled": enabled,
            "extra": {field: values[field] for field in EXTRA if field in values},
            "fields": list(values),
        }
        return msgspec.convert(fields, McpServer)

    def _headers(self, values: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, Any]:
        headers = {**_object(values, "headers"), **_object(values, "http_headers")}
        for header, variable in _object(values, "env_http_headers").items():
            headers[header] = self._variable(str(variable), env, "env_http_headers")
        if token := values.get("bearer_token_env_var"):
            value = self._variable(str(token), env, "bearer_token_env_var")
            headers["Authorization"] = f"Bearer {value}"
        return headers

    def _forwarded(self, values: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, str]:
        """Return the variables in `env_vars`, which Codex forwards, if they are set."""
        given = msgspec.convert(values.get("env_vars") or [], list[Any])
        names = [item.get("name") if isinstance(item, dict) else item for item in given]
        return {name: env[name] for name in names if isinstance(name, str) and name in env}

    def _variable(self, name: str, env: Mapping[str, str], field: str) -> str:
        if name not in env:
            self._note(f"the variable {name} is not set", effect=True, field=field)
        return env.get(name, "")

    def _filters(self, values: Mapping[str, Any]) -> Any:
        filters = values.get("filterMapping")
        if isinstance(filters, str) and filters not in FILTERS:
            choices = ", ".join(FILTERS)
            self._note(
                f"filterMapping must be one of {choices}, not {filters}", field="filterMapping"
            )
            return None
        return filters

    def _note(self, message: str, *, effect: bool = False, field: str = "") -> None:
        self.problems.append(
            Problem(
                message=f"server {self._name}: {message}",
                file=self._file.path,
                line=find_line(self._text, self._name),
                note=not effect,
                field=field,
                entry=self._name,
            )
        )


def find_secrets(fields: Any) -> Iterator[str]:
    """Yield the secrets of a client's sign-in, at any depth."""
    for name, value in fields.items() if isinstance(fields, Mapping) else ():
        if name in SECRET_FIELDS and isinstance(value, str) and len(value) >= SHORTEST_NAMED:
            yield value
        else:
            yield from find_secrets(value)


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


def _digest(entry: Mapping[str, Any]) -> str:
    import hashlib

    try:
        written = msgspec.json.encode(entry, order="sorted")
    except (TypeError, ValueError):  # TOML has dates, and any file may contain surrogates
        written = repr(entry).encode("utf-8", "surrogatepass")
    return f"sha256:{hashlib.sha256(written).hexdigest()}"


def _url(values: Mapping[str, Any]) -> str:
    return str(values.get("url") or values.get("httpUrl") or values.get("serverUrl") or "")


def _object(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the object in a field, or {}. Raises `msgspec.ValidationError` for other types."""
    value = values.get(name)
    return msgspec.convert(value, dict[str, Any]) if value else {}
