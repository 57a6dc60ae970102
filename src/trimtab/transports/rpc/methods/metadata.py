"""State, context window and usage of a session."""

import asyncio
import os

import msgspec

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.codec import peek
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.session import SessionContextChanged
from trimtab.contracts.mcp import origin_of
from trimtab.contracts.messages import Message, ToolMessage, UserMessage, role_of
from trimtab.contracts.options import Thresholds
from trimtab.contracts.run import Measured
from trimtab.providers.tokens import counter_for
from trimtab.runtime.live import LiveSession
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing
from trimtab.transports.rpc.folders import require_folder
from trimtab.transports.rpc.methods.workspaces import describe_workspace

methods = Methods()


@methods.on("session.metadata.snapshot")
async def take_snapshot(call: Call, params: Nothing) -> JsonObject:
    hosted = call.session
    live, times = hosted.live, call.server.times(hosted.id)
    options = live.controls.options
    snapshot: JsonObject = {
        "sessionId": hosted.id,
        "isRemote": False,
        "alreadyInUse": False,
        "workspacePath": live.folder.path,
        "workspace": describe_workspace(live.folder),
        "workingDirectory": options.cwd,
        "currentMode": live.mode,
        "selectedModel": live.model,
        "clientName": options.client_name,
        "sessionLimits": hosted.settings.get("session_limits"),
        **times,
    }
    return {name: value for name, value in snapshot.items() if value is not None}


@methods.on("session.metadata.isProcessing")
async def is_processing(call: Call, params: Nothing) -> JsonObject:
    return {"processing": call.session.live.busy}


@methods.on("session.metadata.activity")
async def get_activity(call: Call, params: Nothing) -> JsonObject:
    busy = call.session.live.busy
    return {"hasActiveWork": busy, "abortable": busy}


class WorkingDirectory(msgspec.Struct, rename="camel"):
    working_directory: str


@methods.on("session.metadata.setWorkingDirectory", WorkingDirectory)
async def set_working_directory(call: Call, params: WorkingDirectory) -> JsonObject:
    cwd = call.session.live.controls.options.cwd
    await call.session.set_folder(require_folder(params.working_directory, cwd))
    return {"workingDirectory": call.session.live.controls.options.cwd}


class Window(msgspec.Struct, rename="camel"):
    """The window to compute figures for, if it is not the session's."""

    prompt_token_limit: int | None = None
    selected_model: str | None = None


@methods.on("session.metadata.contextInfo", Window)
async def get_context_info(call: Call, params: Window) -> JsonObject:
    """Return the use of the window; null before the first model call is measured."""
    live = call.session.live
    found, known = live.context
    if found is None:
        return {"contextInfo": None}
    limit = params.prompt_token_limit or known
    thresholds = live.controls.options.compaction or Thresholds()
    return {
        "contextInfo": {
            "modelName": params.selected_model or live.model,
            "limit": limit,
            "promptTokenLimit": limit,
            "systemTokens": found.system,
            "toolDefinitionsTokens": found.tools,
            "mcpToolsTokens": _count_mcp_tokens(live, found),
            "conversationTokens": found.conversation,
            "totalTokens": found.total,
            "compactionThreshold": int(limit * thresholds.background),
            "bufferTokens": int(limit * (1 - thresholds.exhausted)),
        }
    }


@methods.on("session.metadata.getContextAttribution")
async def get_attribution(call: Call, params: Nothing) -> JsonObject:
    """Return the tokens in the window by category."""
    live = call.session.live
    found, limit = live.context
    if found is None:
        return {"contextAttribution": None}
    thresholds = live.controls.options.compaction or Thresholds()
    buffer = int(limit * (1 - thresholds.exhausted))
    mcp_tokens = _count_mcp_tokens(live, found)
    parts = (
        ("system", "system", "System prompt", found.system),
        ("tools", "toolDefinition", "Tool definitions", found.tools),
        ("messages", "messages", "Messages", found.conversation),
    )
    return {
        "contextAttribution": {
            "modelId": live.model,
            "modelSource": "selected",
            "limit": limit,
            "promptTokenLimit": limit,
            "totalTokens": found.total,
            "bufferTokens": buffer,
            "compactionThreshold": int(limit * thresholds.background),
            "compactions": {"count": live.projections.conversation.compactions},
            "categories": {
                "systemPrompt": found.system,
                "customInstructions": 0,
                "systemTools": found.tools - mcp_tokens,
                "mcpTools": mcp_tokens,
                "messages": found.conversation,
                "freeSpace": max(0, limit - found.total - buffer),
                "buffer": buffer,
            },
            "entries": [
                {"id": part, "kind": kind, "label": label, "tokens": tokens}
                for part, kind, label, tokens in parts
            ],
        }
    }


def _count_mcp_tokens(live: LiveSession, found: Measured) -> int:
    """Return the tokens of MCP tools, estimated by their share of the length of all tools."""
    sizes = [
        (len(msgspec.json.encode(tool.spec)), origin_of(tool) is not None)
        for tool in live.controls.tools
    ]
    mcp_size = sum(size for size, is_mcp in sizes if is_mcp)
    return found.tools * mcp_size // max(1, sum(size for size, _ in sizes))


class ContextChange(msgspec.Struct):
    context: SessionContextChanged


@methods.on("session.metadata.recordContextChange", ContextChange)
async def record_context_change(call: Call, params: ContextChange) -> JsonObject:
    """Record another branch or commit that a client saw in the session's folder.

    News of other folders are ignored: a session moves with `setWorkingDirectory` only.
    """
    live = call.session.live
    if _is_same(params.context.cwd, live.controls.options.cwd):
        live.emit(params.context)
    return {}


@methods.on("session.usage.getMetrics")
async def get_metrics(call: Call, params: Nothing) -> JsonObject:
    live = call.session.live
    usage, changes = live.projections.usage, live.projections.changes
    return {
        "totalPremiumRequestCost": usage.premium_requests,
        "totalUserRequests": sum(peek(line).type == "user.message" for line in live.read_events()),
        "totalApiDurationMs": usage.api_duration_ms,
        "sessionStartTime": call.server.times(live.id)["startTime"],
        "codeChanges": {
            "linesAdded": changes.lines_added,
            "linesRemoved": changes.lines_removed,
            "filesModifiedCount": len(changes.files),
            "filesModified": changes.files,
        },
        "modelMetrics": live.model_metrics(),
        "agentMetrics": usage.agent_metrics(),
        "currentModel": live.model,
        "lastCallInputTokens": usage.last_input_tokens or 0,
        "lastCallOutputTokens": usage.last_output_tokens or 0,
    }


class Recompute(msgspec.Struct, rename="camel"):
    model_id: str


@methods.on("session.metadata.recomputeContextTokens", Recompute)
async def recompute_tokens(call: Call, params: Recompute) -> JsonObject:
    """Count the tokens of the conversation for another model."""
    return await asyncio.to_thread(count_for, call.session.live, params.model_id)


def count_for(live: LiveSession, model: str) -> JsonObject:
    counter, conversation = counter_for(model), live.projections.conversation
    messages = sum(map(counter.of, conversation.messages))
    system = counter.of(UserMessage.of(conversation.system)) if conversation.system else 0
    return {
        "messagesTokenCount": messages,
        "systemTokenCount": system,
        "totalTokens": messages + system,
    }


class Attribution(msgspec.Struct):
    limit: int = 10


@methods.on("session.metadata.getContextHeaviestMessages", Attribution)
async def get_heaviest(call: Call, params: Attribution) -> JsonObject:
    if params.limit < 1:
        raise UsageError("limit must be at least 1; give a larger number.")
    return await asyncio.to_thread(weigh_messages, call.session.live, params.limit)


def weigh_messages(live: LiveSession, count: int) -> JsonObject:
    """Return the messages with the most tokens."""
    counter = counter_for(live.model)
    messages = live.projections.conversation.messages
    weighed = [(counter.of(message), number) for number, message in enumerate(messages)]
    found, _ = live.context
    heaviest: list[JsonObject] = [
        {
            "id": str(number),
            "label": _label(messages[number]),
            "role": role_of(messages[number]),
            "tokens": tokens,
        }
        for tokens, number in sorted(weighed, reverse=True)[:count]
    ]
    total = found.total if found else sum(tokens for tokens, _ in weighed)
    return {"messages": heaviest, "totalTokens": total}


def _label(message: Message) -> str:
    return f"tool: {message.name}" if isinstance(message, ToolMessage) else role_of(message)


def _is_same(path: str, other: str) -> bool:
    return os.path.realpath(path) == os.path.realpath(other)
