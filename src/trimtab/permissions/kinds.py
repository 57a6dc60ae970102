"""The kinds of permission requests: the fields of each in events, and how people are asked.

To add a kind, add a row to `KINDS`: rules, approvals and every display understand it then.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.json_text import indent_json
from trimtab.contracts.processor import PendingCall
from trimtab.contracts.tool import Access

if TYPE_CHECKING:
    from trimtab.permissions.shell.verdict.analysis import Analysis


class ShownRequest(msgspec.Struct, frozen=True):
    """A request for people: a question, and the whole of what it is about.

    Both contain foreign text, in which displays make control characters visible.
    """

    question: str
    text: str = ""
    form: Literal["text", "command", "diff", "json"] = "text"


class PermissionKind(msgspec.Struct, frozen=True):
    """`fields` are those that a request of the kind has besides the common ones."""

    fields: Callable[[Access, PendingCall, "Analysis | None"], JsonObject]
    show: Callable[[JsonObject], ShownRequest]


def show_request(request: JsonObject) -> ShownRequest:
    """Return what to ask a person about a request."""
    return KINDS.get(str(request.get("kind")), OTHER_TOOL).show(request)


def find_kind(access: Access) -> PermissionKind:
    """Return the kind of an access; a kind without a row is treated as a tool."""
    return KINDS.get(access.kind, OTHER_TOOL)


def _shell_fields(access: Access, _: PendingCall, analysis: "Analysis | None") -> JsonObject:
    fields: JsonObject = {"fullCommandText": access.target}
    if analysis is None:
        return fields
    warnings = [*analysis.destructive, *analysis.hazards, *analysis.dynamic]
    warnings += [analysis.problem] if analysis.problem else []
    warning: JsonObject = {"warning": "; ".join(warnings[:3])} if warnings else {}
    return {**fields, **analysis.describe(), **warning}


def _mcp_fields(access: Access, pending: PendingCall, _: "Analysis | None") -> JsonObject:
    name = access.target or pending.tool.spec.name
    return {
        "toolName": name,
        "args": pending.args,
        "serverName": "",
        "toolTitle": name,
        "readOnly": not access.mutates,
    }


def _tool_fields(access: Access, pending: PendingCall, _: "Analysis | None") -> JsonObject:
    return {
        "toolName": access.target or pending.tool.spec.name,
        "args": pending.args,
        "toolDescription": pending.tool.spec.description,
    }


def _show_write(request: JsonObject) -> ShownRequest:
    question = f"Write {request.get('fileName') or ''}?"
    if diff := request.get("diff"):
        return ShownRequest(question, str(diff), "diff")
    return ShownRequest(question, str(request.get("newFileContents") or ""))


def _show_call(question: str, request: JsonObject) -> ShownRequest:
    arguments = request.get("args")
    if not arguments:
        return ShownRequest(question)
    text = indent_json(arguments).decode()
    return ShownRequest(question, text, "json")


def _show_mcp(request: JsonObject) -> ShownRequest:
    tool, server = request.get("toolName") or "", request.get("serverName") or ""
    return _show_call(f"Call {tool} of the MCP server {server}?", request)


OTHER_TOOL = PermissionKind(
    _tool_fields,
    lambda request: _show_call(f"Use the tool {request.get('toolName') or ''}?", request),
)
KINDS: dict[str, PermissionKind] = {
    "shell": PermissionKind(
        _shell_fields,
        lambda request: ShownRequest(
            "Run this command?", str(request.get("fullCommandText") or ""), "command"
        ),
    ),
    "write": PermissionKind(
        lambda access, *_: {
            "fileName": access.target,
            "diff": "",
            "canOfferSessionApproval": True,
        },
        _show_write,
    ),
    "read": PermissionKind(
        lambda access, *_: {"path": access.target},
        lambda request: ShownRequest(f"Read {request.get('path') or ''}?"),
    ),
    "url": PermissionKind(
        lambda access, *_: {"url": access.target},
        lambda request: ShownRequest(f"Open {request.get('url') or ''}?"),
    ),
    "memory": PermissionKind(
        lambda access, *_: {"fact": access.target},
        lambda request: ShownRequest("Remember this?", str(request.get("fact") or "")),
    ),
    "mcp": PermissionKind(_mcp_fields, _show_mcp),
    "custom-tool": OTHER_TOOL,
}
