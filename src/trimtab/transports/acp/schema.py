"""The parameters of the client's requests, as version 1 of the protocol defines them."""

from typing import Any

import msgspec

from trimtab.contracts.events.envelope import JsonObject


class Params(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of parameters: camelCase on the wire, unknown fields ignored."""


class FileSystem(Params, frozen=True, kw_only=True):
    read_text_file: bool = False
    write_text_file: bool = False


class ConfigOptionSupport(Params, frozen=True, kw_only=True):
    boolean: JsonObject | None = None


class SessionSupport(Params, frozen=True, kw_only=True):
    compaction: JsonObject | None = None
    config_options: ConfigOptionSupport | None = None
    notices: JsonObject | None = None


class ElicitationSupport(Params, frozen=True, kw_only=True):
    form: JsonObject | None = None
    url: JsonObject | None = None


class ClientCapabilities(Params, frozen=True, kw_only=True):
    """The requests that the client answers, and the updates that it understands."""

    fs: FileSystem = FileSystem()
    terminal: bool = False
    session: SessionSupport | None = None
    elicitation: ElicitationSupport | None = None

    @property
    def notices(self) -> bool:
        return self.session is not None and self.session.notices is not None

    @property
    def compaction(self) -> bool:
        return self.session is not None and self.session.compaction is not None

    @property
    def boolean_options(self) -> bool:
        options = self.session.config_options if self.session is not None else None
        return options is not None and options.boolean is not None

    @property
    def forms(self) -> bool:
        return self.elicitation is not None and self.elicitation.form is not None


class ClientInfo(Params, frozen=True, kw_only=True):
    name: str = ""
    version: str = ""


class Initialize(Params, frozen=True, kw_only=True):
    protocol_version: int
    client_capabilities: ClientCapabilities | None = None
    client_info: ClientInfo | None = None


class Variable(Params, frozen=True, kw_only=True):
    """An environment variable, or a header of a request."""

    name: str
    value: str


class McpServer(Params, frozen=True, kw_only=True):
    """An MCP server of the client. Without a `type` it is a program on standard streams."""

    name: str
    type: str = "stdio"
    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[Variable, ...] = ()
    url: str = ""
    headers: tuple[Variable, ...] = ()


class NewSession(Params, frozen=True, kw_only=True):
    cwd: str
    mcp_servers: tuple[McpServer, ...] = ()
    additional_directories: tuple[str, ...] = ()


class StoredSession(Params, frozen=True, kw_only=True):
    """The parameters of load, resume and fork."""

    session_id: str
    cwd: str
    mcp_servers: tuple[McpServer, ...] = ()
    additional_directories: tuple[str, ...] = ()


class SessionParams(Params, frozen=True, kw_only=True):
    """The parameters of close, delete and cancel."""

    session_id: str


class ListSessions(Params, frozen=True, kw_only=True):
    cwd: str | None = None
    cursor: str | None = None


class SetMode(Params, frozen=True, kw_only=True):
    session_id: str
    mode_id: str


class SetConfigOption(Params, frozen=True, kw_only=True):
    session_id: str
    config_id: str
    value: str | bool


class Resource(Params, frozen=True, kw_only=True):
    uri: str
    text: str | None = None
    blob: str | None = None
    mime_type: str | None = None


class ContentBlock(Params, frozen=True, kw_only=True):
    """A block of a prompt. The fields that its type requires are checked when it is read."""

    type: str
    text: str | None = None
    data: str | None = None
    mime_type: str | None = None
    uri: str | None = None
    name: str | None = None
    resource: Resource | None = None


class PromptParams(Params, frozen=True, kw_only=True):
    session_id: str
    prompt: tuple[ContentBlock, ...]


class CancelRequest(Params, frozen=True, kw_only=True):
    request_id: str | int | None


class Outcome(Params, frozen=True, kw_only=True):
    outcome: str = "cancelled"
    option_id: str = ""


class PermissionAnswer(Params, frozen=True, kw_only=True):
    outcome: Outcome = Outcome()


class FormAnswer(Params, frozen=True, kw_only=True):
    action: str = "cancel"
    content: dict[str, Any] | None = None
