"""Hooks that a client runs: asked at fixed points, each call bracketed by two events."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import msgspec

from trimtab.contracts.errors import ModelError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.hook import HookEnd, HookStart
from trimtab.contracts.events.own import PromptWithdrawn
from trimtab.contracts.events.session import SessionWarning
from trimtab.contracts.events.user import UserMessage
from trimtab.contracts.ids import new_id
from trimtab.contracts.messages import AssistantMessage, Image
from trimtab.contracts.processor import PendingCall, Processor, Stop
from trimtab.contracts.run import Prompt, Run
from trimtab.contracts.tool import ToolResult
from trimtab.loop.processors.stop_gate import StopHook
from trimtab.runtime.options import HookFailed, HookPort


class HookCaller:
    """Calls hooks and records that it did."""

    def __init__(self, port: HookPort, cwd: str) -> None:
        self._port = port
        self._cwd = cwd

    async def call(self, run: Run, hook: str, **given: Any) -> JsonObject:
        """The output of a hook, empty if it has none. Raises `HookFailed`."""
        if not self._port.wanted:
            return {}
        call_id = new_id()
        payload = {
            "sessionId": run.session.id,
            "timestamp": int(time.time() * 1000),
            "cwd": self._cwd,
            **given,
        }
        run.session.emit(HookStart(hook_invocation_id=call_id, hook_type=hook, input=payload))
        output: JsonObject | None = None
        error: JsonObject | None = {"message": "The hook was interrupted."}
        try:
            output = await self._port.call(hook, payload)
            error = None
        except HookFailed as failure:
            error = {"message": str(failure)}
            raise
        finally:
            run.session.emit(
                HookEnd(
                    hook_invocation_id=call_id,
                    hook_type=hook,
                    success=error is None,
                    output=output,
                    error=error,
                )
            )
        return output or {}

    async def try_call(self, run: Run, hook: str, **given: Any) -> JsonObject:
        """As `call`, for hooks whose failure changes nothing: it is recorded, that is all."""
        try:
            return await self.call(run, hook, **given)
        except HookFailed:
            return {}


class ClientHooks(Processor):
    """Prompts, tools and errors are shown to the client, which may change or refuse them."""

    def __init__(self, caller: HookCaller) -> None:
        self._caller = caller
        self._retries = 0

    async def on_prompt(self, run: Run, prompt: Prompt) -> Prompt | None:
        self._retries = 0
        if prompt.source != "user":
            return prompt
        output = await self._caller.try_call(run, "userPromptSubmitted", prompt=prompt.text)
        if output.get("decision") == "block":
            reason = str(output.get("reason") or "A userPromptSubmitted hook blocked the prompt.")
            run.session.emit(
                SessionWarning(
                    warning_type="policy_blocked",
                    message=reason,
                    originating_message_id=prompt.id or None,
                )
            )
            run.session.emit(PromptWithdrawn(message_id=prompt.id, reason=reason))
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
        try:
            output = await self._caller.call(
                run,
                "preToolUse",
                toolName=pending.call.name,
                toolArgs=_written(pending.args),
                toolCallId=pending.call.id,
            )
        except HookFailed as failure:  # nobody said that this may happen
            return _denied(f"the hook could not be asked ({failure})")
        if output.get("permissionDecision") == "deny":
            return _denied(str(output.get("permissionDecisionReason") or "No reason provided"))
        modified = output.get("modifiedArgs")
        if isinstance(modified, str):
            modified = _read_object(modified)
        if isinstance(modified, dict):
            args = run.read_arguments(pending.tool.spec, _written(modified))
            if isinstance(args, ToolResult):
                return args
            pending = msgspec.structs.replace(pending, args=args)
        if isinstance(context := output.get("additionalContext"), str) and context:
            _remark(run, context)
        return pending

    async def after_tool(self, run: Run, pending: PendingCall, result: ToolResult) -> ToolResult:
        given = {"toolName": pending.call.name, "toolArgs": _written(pending.args)}
        if result.kind == "failure":
            output = await self._caller.try_call(
                run, "postToolUseFailure", **given, error=result.summary or result.text
            )
        else:
            output = await self._caller.try_call(
                run, "postToolUse", **given, toolResult=_shown(result)
            )
            result = _modified(result, output.get("modifiedResult"))
        if isinstance(context := output.get("additionalContext"), str) and context:
            _remark(run, context)
        return result

    async def on_request_error(self, run: Run, error: ModelError, attempt: int) -> bool:
        output = await self._caller.try_call(
            run,
            "errorOccurred",
            error={"message": error.message, "name": type(error).__name__},
            errorContext="model_call",
            recoverable=error.category in ("retryable", "overloaded", "rate_limit", "transport"),
        )
        wanted = output.get("retryCount", 1) if output.get("errorHandling") == "retry" else 0
        if not isinstance(wanted, int) or self._retries >= wanted:
            return False
        self._retries += 1
        return True


class StartHooks(Processor):
    """What the model is about to read is shown once more; the first prompt starts the session."""

    def __init__(self, caller: HookCaller, *, source: str) -> None:
        self._caller = caller
        self._source = source
        self._started = False

    async def on_prompt(self, run: Run, prompt: Prompt) -> Prompt:
        if prompt.source != "user":
            return prompt
        output = await self._caller.try_call(
            run,
            "userPromptTransformed",
            prompt=prompt.text,
            transformedPrompt=prompt.transformed or prompt.text,
        )
        if isinstance(modified := output.get("modifiedTransformedPrompt"), str):
            prompt = msgspec.structs.replace(prompt, transformed=modified)
        if not self._started:
            self._started = True
            output = await self._caller.try_call(
                run, "sessionStart", source=self._source, initialPrompt=prompt.text
            )
            if isinstance(context := output.get("additionalContext"), str) and context:
                run.session.emit(UserMessage(content=context, source="hook"))
        return prompt


def stop_hook(caller: HookCaller) -> StopHook:
    """Asks `agentStop`; a block's reason sends the agent back to work."""

    async def ask(run: Run, active: bool) -> str | None:
        output = await caller.try_call(
            run, "agentStop", stopReason="end_turn", stop_hook_active=active
        )
        if output.get("decision") != "block":
            return None
        return str(output.get("reason") or "An agentStop hook sent you back to work.")

    return ask


def end_hook(caller: HookCaller, run: Run) -> Callable[[Stop], Awaitable[None]]:
    """Tells `sessionEnd` that a drain is over, and why. It gets a few seconds, no more."""

    async def tell(stop: Stop) -> None:
        reason = {"aborted": "abort", "error": "error", "deadline": "timeout"}.get(stop.reason)
        given: JsonObject = {"reason": reason or "complete"}
        if reason == "error":
            given["error"] = {"message": stop.message, "name": "Error"}
        messages = run.session.conversation.messages
        last = messages[-1] if messages else None
        if isinstance(last, AssistantMessage) and last.text:
            given["finalMessage"] = last.text
        with suppress(TimeoutError):
            async with asyncio.timeout(5):
                await caller.try_call(run, "sessionEnd", **given)

    return tell


def _denied(reason: str) -> ToolResult:
    return ToolResult(text=f"Denied by preToolUse hook: {reason}", kind="denied")


def _remark(run: Run, text: str) -> None:
    """Tell the model something; it stands after the results of the calls that are open."""
    run.session.emit(UserMessage(content=text, source="hook"))


def _written(args: Any) -> str:
    return msgspec.json.encode(args).decode()


def _read_object(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None


def _shown(result: ToolResult) -> JsonObject:
    shown: JsonObject = {"textResultForLlm": result.text, "resultType": result.kind}
    if result.detail is not None:
        shown["sessionLog"] = result.detail
    if result.telemetry:
        shown["toolTelemetry"] = result.telemetry
    if result.images:
        shown["binaryResultsForLlm"] = [
            {"type": "image", "data": image.data, "mimeType": image.mime_type}
            for image in result.images
        ]
    return shown


def _modified(result: ToolResult, change: Any) -> ToolResult:
    if isinstance(change, str):
        return msgspec.structs.replace(result, text=change, detail=None)
    if not isinstance(change, dict):
        return result
    from trimtab.runtime.external_tools import Outcome, read_outcome

    other = read_outcome("", {}, Outcome(result={**_shown(result), **change}))
    images: tuple[Image, ...] = result.images
    if "binaryResultsForLlm" in change:
        images = other.images
    return msgspec.structs.replace(other, images=images, changes=result.changes)
