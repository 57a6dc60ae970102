"""Calls hooks from the loop, for prompts, tools, errors and stops, and applies their answers."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import msgspec

from trimtab.contracts.customization import AgentDefinition
from trimtab.contracts.errors import ExitCode, ModelError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.own import ArgumentsChanged, PromptWithdrawn
from trimtab.contracts.events.session import SessionInfo, SessionWarning
from trimtab.contracts.events.user import UserMessage
from trimtab.contracts.mcp import origin_of
from trimtab.contracts.messages import AssistantMessage
from trimtab.contracts.permission import Answer
from trimtab.contracts.processor import CallSkipped, PendingCall, Processor, Stop
from trimtab.contracts.run import Prompt, Run
from trimtab.contracts.tool import ToolResult
from trimtab.hooks.caller import HookCaller

ReadResult = Callable[[JsonObject], ToolResult]
"""Converts a result in the hooks' format to a tool result."""

_RECOVERABLE = ("retryable", "overloaded", "rate_limit", "transport")


class Hooks(Processor):
    """Lets hooks change or refuse prompts, tool calls and results, and react to errors."""

    def __init__(self, caller: HookCaller, read_result: ReadResult) -> None:
        self._caller = caller
        self._read_result = read_result
        self._retries = 0

    async def on_prompt(self, run: Run, prompt: Prompt) -> Prompt | None:
        self._retries = 0
        if prompt.source != "user":
            return prompt
        output = await self._caller.call("userPromptSubmitted", prompt=prompt.text)
        apply_message(run, output)
        if output.get("decision") == "block" or output.get("continue") is False:
            _record_block(run, prompt, output)
            return None
        if isinstance(modified := output.get("modifiedPrompt"), str):
            prompt = msgspec.structs.replace(prompt, text=modified)
        if isinstance(context := output.get("additionalContext"), str) and context:
            prompt = msgspec.structs.replace(
                prompt,
                text=f"{prompt.text}\n\n<system_reminder>\n{context}\n</system_reminder>",
                display=prompt.display or prompt.text,
            )
        return prompt

    async def before_tool(self, run: Run, pending: PendingCall) -> PendingCall | ToolResult:
        output = await self._caller.call(
            "preToolUse",
            toolName=pending.call.name,
            toolArgs=pending.args,
            toolCallId=pending.call.id,
            **_describe_origin(pending),
        )
        apply_message(run, output)
        decision = output.get("permissionDecision")
        if decision == "deny":
            reason = str(output.get("permissionDecisionReason") or "No reason provided")
            return ToolResult(text=f"Denied by preToolUse hook: {reason}", kind="denied")
        modified = output.get("modifiedArgs")
        if isinstance(modified, dict):
            text = msgspec.json.encode(modified).decode()
            args = run.agent.parser.read_arguments(pending.tool.spec, text)
            if isinstance(args, ToolResult):
                return args
            pending = msgspec.structs.replace(pending, args=args)
            changed = ArgumentsChanged(tool_call_id=pending.call.id, arguments=modified)
            run.session.emit(changed)
        if decision in ("allow", "ask"):
            pending = msgspec.structs.replace(pending, hook_verdict=decision)
        add_context(run, output)
        return pending

    async def after_tool(self, run: Run, pending: PendingCall, result: ToolResult) -> ToolResult:
        given = {
            "toolName": pending.call.name,
            "toolArgs": pending.args,
            "toolCallId": pending.call.id,
            **_describe_origin(pending),
        }
        if result.kind == "failure":
            error = result.summary or result.text
            output = await self._caller.call("postToolUseFailure", **given, error=error)
        else:
            described = _describe_result(result)
            output = await self._caller.call("postToolUse", **given, toolResult=described)
            result = self._modified(result, output)
        apply_message(run, output)
        add_context(run, output)
        return result

    async def on_request_error(self, run: Run, error: ModelError, attempt: int) -> bool:
        output = await self._caller.call(
            "errorOccurred",
            error={"message": error.message, "name": type(error).__name__},
            errorContext="model_call",
            recoverable=error.category in _RECOVERABLE,
        )
        if output.get("errorHandling") == "abort":
            raise error
        if output.get("errorHandling") == "skip":
            message = f"A hook skipped a failed model call: {error.message}"
            run.session.emit(SessionWarning(warning_type="model_call_skipped", message=message))
            raise CallSkipped
        retries = output.get("retryCount", 1) if output.get("errorHandling") == "retry" else 0
        if not isinstance(retries, int) or self._retries >= retries:
            return False
        self._retries += 1
        return True

    def _modified(self, result: ToolResult, output: JsonObject) -> ToolResult:
        change = output.get("modifiedResult")
        if not isinstance(change, dict):
            if output.get("decision") == "block" and output.get("reason"):
                output.setdefault("additionalContext", str(output["reason"]))
            return result
        other = self._read_result(change)
        if change.get("sessionLog") == result.detail and other.text != result.text:
            other = msgspec.structs.replace(other, detail=None)
        return msgspec.structs.replace(other, changes=result.changes)


class StartHooks(Processor):
    """Calls `userPromptTransformed` for each prompt, and `sessionStart` with the first."""

    def __init__(self, caller: HookCaller, *, source: str) -> None:
        self._caller = caller
        self._source = source
        self._started = False

    async def on_prompt(self, run: Run, prompt: Prompt) -> Prompt:
        if prompt.source != "user":
            return prompt
        output = await self._caller.call(
            "userPromptTransformed",
            prompt=prompt.text,
            transformedPrompt=prompt.transformed or prompt.text,
        )
        if isinstance(modified := output.get("modifiedTransformedPrompt"), str):
            prompt = msgspec.structs.replace(prompt, transformed=modified)
        if not self._started:
            self._started = True
            output = await self._caller.call(
                "sessionStart", source=self._source, initialPrompt=prompt.text
            )
            apply_message(run, output)
            add_context(run, output)
        return prompt


def stop_hook(caller: HookCaller, transcript: str) -> Callable[[Run, bool], Awaitable[str | None]]:
    """Return a function that calls `agentStop`, and returns the reason of a block."""

    async def ask(run: Run, active: bool) -> str | None:
        output = await caller.call(
            "agentStop",
            transcriptPath=transcript,
            stopReason="end_turn",
            stop_hook_active=active,
        )
        return _read_block(run, output, "agentStop")

    return ask


def subagent_stop_hook(
    caller: HookCaller, transcript: str, subagent: JsonObject
) -> Callable[[Run, bool], Awaitable[str | None]]:
    """Return a function that calls `subagentStop`, and returns the reason of a block."""

    async def ask(run: Run, active: bool) -> str | None:
        output = await caller.call(
            "subagentStop",
            **subagent,
            transcriptPath=transcript,
            stopReason="end_turn",
            stop_hook_active=active,
            response=last_reply(run),
        )
        return _read_block(run, output, "subagentStop")

    return ask


def _read_block(run: Run, output: JsonObject, event: str) -> str | None:
    apply_message(run, output)
    if output.get("decision") != "block":
        return None
    return str(output.get("reason") or f"The {event} hook requires you to continue.")


def describe_subagent(agent: AgentDefinition, agent_id: str) -> JsonObject:
    """Return the input fields that identify a sub-agent."""
    return {
        "agentId": agent_id,
        "agentName": agent.name,
        "agentDisplayName": agent.display_name,
        "agentDescription": agent.description,
    }


async def subagent_start_hook(
    caller: HookCaller, run: Run, transcript: str, subagent: JsonObject
) -> None:
    """Call `subagentStart`, which may add context before the sub-agent's task."""
    output = await caller.call("subagentStart", **subagent, transcriptPath=transcript)
    apply_message(run, output)
    add_context(run, output)


async def end_hook(caller: HookCaller, run: Run, stop: Stop) -> None:
    """Call `sessionEnd` after a drain, for at most a few seconds."""
    reason = {"aborted": "abort", "error": "error", "deadline": "timeout"}.get(stop.reason)
    given: JsonObject = {"reason": reason or "complete"}
    if reason == "error":
        given["error"] = {"message": stop.message, "name": "Error"}
    if final := last_reply(run):
        given["finalMessage"] = final
    with suppress(TimeoutError):
        async with asyncio.timeout(5):
            await caller.call("sessionEnd", **given)


def last_reply(run: Run) -> str:
    """Return the text of the last message if the model wrote it, else an empty string."""
    messages = run.session.conversation.messages
    last = messages[-1] if messages else None
    return last.text if isinstance(last, AssistantMessage) else ""


def permission_hook(
    caller: HookCaller,
) -> Callable[[PendingCall, JsonObject], Awaitable[Answer | None]]:
    """Return a function that calls `permissionRequest`; None leaves the answer to the person."""

    async def ask(pending: PendingCall, request: JsonObject) -> Answer | None:
        output = await caller.call(
            "permissionRequest",
            toolName=pending.call.name,
            toolInput=pending.args,
            permissionSuggestions=request.get("suggestedRules", []),
            **_describe_origin(pending),
        )
        if output.get("behavior") == "allow":
            return Answer(kind="approve-once")
        if output.get("behavior") == "deny":
            message = str(output.get("message") or "No reason provided")
            kind = "reject" if output.get("interrupt") is True else "deny-by-hook"
            return Answer(kind=kind, feedback=message)
        return None

    return ask


def apply_message(run: Run, output: JsonObject) -> None:
    """Show a hook's message to the person, and stop the run if the hook asks for it."""
    if isinstance(message := output.get("systemMessage"), str) and message:
        run.session.emit(SessionInfo(info_type="hook", message=message))
    if output.get("continue") is False:
        reason = str(output.get("stopReason") or "A hook stopped the agent.")
        run.stop = Stop(reason="blocked", exit_code=ExitCode.INCOMPLETE, message=reason)


def _record_block(run: Run, prompt: Prompt, output: JsonObject) -> None:
    given = output.get("reason") or output.get("stopReason")
    reason = str(given or "A userPromptSubmitted hook blocked the prompt.")
    run.session.emit(
        SessionWarning(
            warning_type="policy_blocked",
            message=reason,
            originating_message_id=prompt.id or None,
        )
    )
    run.session.emit(PromptWithdrawn(message_id=prompt.id, reason=reason))


def add_context(run: Run, output: JsonObject) -> None:
    """Add a hook's context to the conversation, after the results of open tool calls."""
    if isinstance(context := output.get("additionalContext"), str) and context:
        run.session.emit(UserMessage(content=context, source="hook"))


def _describe_origin(pending: PendingCall) -> JsonObject:
    """Return the server and tool name of an MCP tool, which its own name may not contain."""
    origin = origin_of(pending.tool)
    return {"mcpServerName": origin.server, "mcpToolName": origin.tool} if origin else {}


def _describe_result(result: ToolResult) -> JsonObject:
    fields: JsonObject = {"textResultForLlm": result.text, "resultType": result.kind}
    if result.detail is not None:
        fields["sessionLog"] = result.detail
    if result.telemetry:
        fields["toolTelemetry"] = result.telemetry
    if result.images:
        fields["binaryResultsForLlm"] = [_describe_image(image) for image in result.images]
    return fields


def _describe_image(image: Any) -> JsonObject:
    return {
        "type": "image",
        "data": image.data,
        "mimeType": image.mime_type,
        "description": image.name,
    }
