"""Turns the parts of a session into the updates that its client is sent."""

from collections.abc import Callable, Sequence

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.host.calls import describe_edits
from trimtab.host.parts import (
    Compaction,
    ContextUsage,
    EditsByOthers,
    Markdown,
    Notice,
    Part,
    QueuedPrompt,
    Reasoning,
    Title,
    ToolInvocation,
    UserPrompt,
)
from trimtab.transports.acp.schema import ClientCapabilities
from trimtab.transports.acp.tool_calls import (
    ReadBlob,
    build_content,
    build_diffs,
    build_raw_output,
    describe_title,
    find_kind,
    find_locations,
)

PASSING = (Notice, QueuedPrompt, Title, ContextUsage, Compaction)
"""Parts about the moment at which they are sent, which a replay leaves out."""
SEVERITIES = {"info": "info", "warning": "warning", "error": "error"}


class ShownCall(msgspec.Struct):
    """A tool call as the client knows it."""

    id: str
    call: ToolInvocation
    status: str = "pending"
    terminal: str = ""
    """The editor's terminal in which the call's command runs."""


class UpdateBuilder:
    """Builds updates from parts, and remembers the calls that the client has been told of.

    Models choose the ids of calls, and some use an id twice; the client is given another one then.
    The choice depends on the order of calls alone, so a replayed session has the ids it had.
    """

    def __init__(self, capabilities: ClientCapabilities, cwd: str, read: ReadBlob) -> None:
        self._capabilities = capabilities
        self._cwd = cwd
        self._read = read
        self._calls: dict[str, ShownCall] = {}
        self._used: dict[str, int] = {}
        self._command: QueuedPrompt | None = None
        self._usage: JsonObject = {}
        self.cost: Callable[[], float | None] = lambda: None
        """Returns what the session has cost so far, in USD, if that is known."""

    def build(self, part: Part) -> Sequence[JsonObject]:
        """Return the updates for a part. Of a prompt there are none: the client has sent it.

        Of a sub-agent, only its calls are shown: its text is the result of the call it works for.
        """
        updates: Sequence[JsonObject] = ()
        match part:
            case ToolInvocation():
                updates = self._build_call(part)
            case Notice():
                updates = self._build_notice(part)
            case EditsByOthers():
                text = f"{describe_edits(part)}\n"
                updates = (chunk("agent_thought_chunk", text, part.key),)
            case _ if part.agent_id is not None:
                pass
            case Markdown() if part.delta:
                updates = (chunk("agent_message_chunk", part.delta, part.key),)
            case Reasoning() if part.delta:
                updates = (chunk("agent_thought_chunk", part.delta, part.key),)
            case Title():
                updates = ({"sessionUpdate": "session_info_update", "title": part.text},)
            case ContextUsage():
                updates = (self._build_usage(part),)
            case Compaction() if self._capabilities.compaction:
                updates = (build_compaction(part),)
        return updates

    def replay(self, part: Part) -> Sequence[JsonObject]:
        """Return the updates for a part of a stored session."""
        if isinstance(part, UserPrompt):
            return show_prompt(part) if part.agent_id is None else ()
        return self._replay_command(part) if isinstance(part, PASSING) else self.build(part)

    def _replay_command(self, part: Part) -> Sequence[JsonObject]:
        """Return a slash command and its answer; other passing parts are not replayed."""
        if isinstance(part, QueuedPrompt) and part.state == "waiting":
            self._command = part if part.text.startswith("/") else None
        if not isinstance(part, Notice) or part.level != "answer":
            return ()
        command, self._command = self._command, None
        answer = chunk("agent_message_chunk", part.text, part.key)
        if command is None:
            return (answer,)
        return chunk("user_message_chunk", command.text, command.key), answer

    def set_cwd(self, cwd: str) -> None:
        """Set the folder that relative paths of calls refer to."""
        self._cwd = cwd

    def find_call(self, agent_id: str | None, call_id: str) -> ShownCall | None:
        """Return an open call as the client knows it."""
        return self._calls.get(f"call {agent_id or ''} {call_id}")

    def add_terminal(self, call_id: str, terminal_id: str) -> Sequence[JsonObject]:
        """Return the updates that show the terminal of a call."""
        for shown in self._calls.values():
            if shown.call.call_id == call_id:
                shown.terminal = terminal_id
                updates = [self.build_output(shown)]
                if shown.status == "pending":
                    updates.insert(0, self._change_status(shown, "in_progress"))
                return updates
        return ()

    def end_open_calls(self) -> Sequence[JsonObject]:
        """Return the updates for calls without a result, such as those of a killed process."""
        ended = [self._change_status(shown, "failed") for shown in self._calls.values()]
        self._calls.clear()
        return ended

    def describe_call(self, shown: ShownCall) -> JsonObject:
        """Return the fields that describe a call before it has run."""
        call = shown.call
        fields: JsonObject = {
            "toolCallId": shown.id,
            "title": describe_title(call, self._cwd),
            "kind": find_kind(call),
            "name": call.name,
        }
        if locations := find_locations(call, self._cwd):
            fields["locations"] = locations
        if call.arguments is not None:
            fields["rawInput"] = call.arguments
        return fields

    def _build_call(self, call: ToolInvocation) -> Sequence[JsonObject]:
        shown = self._calls.get(call.key)
        if shown is None:
            shown = ShownCall(self._choose_id(call.call_id), call)
            self._calls[call.key] = shown
            described = {"sessionUpdate": "tool_call", **self.describe_call(shown)}
            return ({**described, "status": "pending"},)
        before, shown.call = shown.call, call
        if call.ended:
            self._calls.pop(call.key)
            return self._build_end(shown)
        updates: list[JsonObject] = []
        if shown.status == "pending" and call.state == "running":
            updates.append(self._change_status(shown, "in_progress"))
        if call.agent is not None and before.agent != call.agent:
            title = describe_title(call, self._cwd)
            updates.append({**self._name_call(shown), "title": title})
        if len(call.edits) != len(before.edits):
            content = self._build_content(shown)
            locations = find_locations(call, self._cwd)
            updates.append({**self._name_call(shown), "content": content, "locations": locations})
        return updates

    def _name_call(self, shown: ShownCall) -> JsonObject:
        return {"sessionUpdate": "tool_call_update", "toolCallId": shown.id}

    def build_output(self, shown: ShownCall) -> JsonObject:
        """Return the update with the output that a call has given so far."""
        return {**self._name_call(shown), "content": self._build_content(shown)}

    def _build_content(self, shown: ShownCall) -> list[JsonObject]:
        diffs = build_diffs(shown.call, self._read)
        if shown.terminal:
            return [*diffs, {"type": "terminal", "terminalId": shown.terminal}]
        return build_content(shown.call, diffs)

    def _build_end(self, shown: ShownCall) -> Sequence[JsonObject]:
        call = shown.call
        updates: list[JsonObject] = []
        if shown.status == "pending" and call.state in ("completed", "failed"):
            updates.append(self._change_status(shown, "in_progress"))
        end = self._change_status(shown, "completed" if call.state == "completed" else "failed")
        end["content"] = self._build_content(shown)
        if locations := find_locations(call, self._cwd):
            end["locations"] = locations
        end["rawOutput"] = build_raw_output(call)
        return [*updates, end]

    def _change_status(self, shown: ShownCall, status: str) -> JsonObject:
        shown.status = status
        return {**self._name_call(shown), "status": status}

    def _choose_id(self, call_id: str) -> str:
        count = self._used[call_id] = self._used.get(call_id, 0) + 1
        return call_id if count == 1 else f"{call_id} ({count})"

    def _build_notice(self, notice: Notice) -> Sequence[JsonObject]:
        """Return a message or notice; a client without notices reads warnings as thoughts."""
        if notice.level == "answer":
            return (chunk("agent_message_chunk", notice.text, notice.key),)
        if self._capabilities.notices:
            severity = SEVERITIES[notice.level]
            title, _, description = notice.text.partition("\n")
            update = {"sessionUpdate": "notice", "severity": severity, "title": title}
            return ({**update, "description": description} if description else update,)
        if notice.level == "warning" and notice.kind != "abort":
            return (chunk("agent_thought_chunk", f"Warning: {notice.text}\n", notice.key),)
        return ()

    def _build_usage(self, usage: ContextUsage) -> JsonObject:
        update: JsonObject = {
            "sessionUpdate": "usage_update",
            "used": usage.used,
            "size": usage.limit,
        }
        if (cost := self.cost()) is not None:
            update["cost"] = {"amount": round(cost, 6), "currency": "USD"}
        self._usage = update
        return update

    def build_final_usage(self) -> JsonObject | None:
        """Return the usage with the cost at the end of a turn, if that has changed."""
        cost = self.cost()
        if cost is None or not self._usage:
            return None
        update = {**self._usage, "cost": {"amount": round(cost, 6), "currency": "USD"}}
        changed = update != self._usage
        self._usage = update
        return update if changed else None


def chunk(kind: str, text: str, message_id: str) -> JsonObject:
    """Return a piece of a message."""
    content = {"type": "text", "text": text}
    return {"sessionUpdate": kind, "content": content, "messageId": message_id}


def show_prompt(prompt: UserPrompt) -> Sequence[JsonObject]:
    """Return a prompt of a stored session: its text, and the images attached to it."""
    if prompt.source not in ("", "user"):
        return ()
    updates = [chunk("user_message_chunk", prompt.text, prompt.key)] if prompt.text else []
    for attachment in prompt.attachments:
        block: JsonObject | None = None
        if attachment.get("type") == "blob" and attachment.get("data"):
            mime_type = str(attachment.get("mimeType") or "application/octet-stream")
            if mime_type.startswith("image/"):
                block = {"type": "image", "data": attachment["data"], "mimeType": mime_type}
        elif attachment.get("path"):
            path = str(attachment["path"])
            name = str(attachment.get("displayName") or path)
            block = {"type": "resource_link", "uri": f"file://{path}", "name": name}
        if block is not None:
            updates.append(
                {
                    "sessionUpdate": "user_message_chunk",
                    "content": block,
                    "messageId": prompt.key,
                }
            )
    return updates


def build_compaction(part: Compaction) -> JsonObject:
    update: JsonObject = {
        "sessionUpdate": "compaction_update",
        "compactionId": part.key.removeprefix("compaction ") or "compaction",
        "status": "in_progress",
    }
    if part.success is not None:
        update["status"] = "completed" if part.success else "failed"
    if part.error:
        update["error"] = part.error
    return update
