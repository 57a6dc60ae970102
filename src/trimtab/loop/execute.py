"""Runs the tool calls of one reply; every call ends with a result, whatever happens."""

import asyncio
from collections.abc import Sequence

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.own import ToolRunning
from trimtab.contracts.events.tool import ToolExecutionComplete, ToolExecutionStart
from trimtab.contracts.events.user import UserMessage
from trimtab.contracts.mcp import origin_of
from trimtab.contracts.messages import INTERRUPTED, ToolCall
from trimtab.contracts.processor import PendingCall
from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.run import Run
from trimtab.contracts.tool import Access, Args, Tool, ToolContext, ToolResult

MAX_ERROR_LENGTH = 4000
"""The length in characters of an exception's text, which no processor shortens."""


async def execute(run: Run, calls: Sequence[ToolCall]) -> list[ToolResult]:
    """Run the calls of one reply in parallel; record each result as it arrives."""
    calls = [run.agent.parser.translate(call, run.agent.tools) for call in calls]
    for call in calls:
        run.session.emit(
            ToolExecutionStart(
                tool_call_id=call.id,
                tool_name=call.name,
                arguments=call.readable_arguments(),
                model=run.agent.model.name,
                turn_id=str(run.turn),
                **describe_origin(run.agent.tools.get(call.name)),
            )
        )
    if len(calls) == 1 or not run.agent.model.parallel_tools:
        results = [await run_call(run, call) for call in calls]
    else:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(run_call(run, call)) for call in calls]
        results = [task.result() for task in tasks]
    record_images(run, results)
    return results


def describe_origin(tool: Tool | None) -> JsonObject:
    """Return the event fields that name the MCP server and tool; none for other tools."""
    origin = None if tool is None else origin_of(tool)
    if origin is None:
        return {}
    return {
        "mcp_server_name": origin.server,
        "mcp_tool_name": origin.tool,
        "mcp_transport": origin.transport,
        "mcp_config_source": origin.source,
        "tool_title": origin.title or None,
    }


async def run_call(run: Run, call: ToolCall) -> ToolResult:
    """Run one call and record its result, also if it is interrupted or crashes."""
    try:
        result = await process_call(run, call)
    except asyncio.CancelledError as error:
        if not run.suspended:
            printed = error.printed if isinstance(error, CallInterrupted) else ""
            result = ToolResult(text=INTERRUPTED, kind="failure")
            record(run, call, result, code="interrupted", printed=printed)
        # Time-outs and task groups recognise this very class only.
        raise asyncio.CancelledError(*error.args) from None
    except Exception as error:  # a bug in the tool, or an error of the operating system
        result = ToolResult(text=describe_crash(call, error), kind="failure", summary=str(error))
    record(run, call, result)
    return result


class CallInterrupted(asyncio.CancelledError):
    """Raised when a running call is cancelled, with the end of what it has printed."""

    def __init__(self, printed: str) -> None:
        super().__init__()
        self.printed = printed


class MissingTool:
    """Stands for an unknown tool, so that processors see the call like any other."""

    def __init__(self, name: str, advice: str) -> None:
        self.spec = ToolSpec(name=name, description="", parameters={"type": "object"})
        self._text = f"Tool '{name}' does not exist. {advice}".rstrip()

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        return [Access(kind="none", mutates=False)]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        return ToolResult(text=self._text, kind="failure")


async def process_call(run: Run, call: ToolCall) -> ToolResult:
    """Parse the arguments, then pass the call through `before_tool`, the tool, `after_tool`."""
    tool = run.agent.tools.get(call.name)
    if tool is None:
        tool = MissingTool(call.name, run.agent.parser.advise(call.name))
    args = run.agent.parser.read_arguments(tool.spec, call.arguments)
    if isinstance(args, ToolResult):
        return args
    pending = PendingCall(call=call, tool=tool, args=args)
    for processor in run.agent.acting["before_tool"]:
        verdict = await processor.before_tool(run, pending)
        if isinstance(verdict, ToolResult):
            return verdict
        pending = verdict
    ctx = run.tool_context(call.id)
    if any(access.mutates for access in pending.touches(run)):
        await run.session.synced()  # the start event must be on disk before anything changes
    run.session.emit(ToolRunning(tool_call_id=call.id))
    try:
        result = await pending.tool.run(pending.args, ctx)
    except asyncio.CancelledError:
        raise CallInterrupted(ctx.printed) from None
    for processor in run.agent.acting["after_tool"]:
        result = await processor.after_tool(run, pending, result)
    return result


def record(
    run: Run, call: ToolCall, result: ToolResult, code: str | None = None, printed: str = ""
) -> None:
    """Emit the result of a call; `printed` is what a failed one printed, for people."""
    success = result.kind == "success"
    message = result.summary or result.text
    edits: list[JsonObject] = [
        {
            "kind": "create" if change.created else "edit",
            "path": change.path,
            "linesAdded": change.lines_added,
            "linesRemoved": change.lines_removed,
        }
        for change in result.changes
    ]
    run.session.emit(
        ToolExecutionComplete(
            tool_call_id=call.id,
            success=success,
            model=run.agent.model.name,
            interaction_id=run.interaction_id,
            turn_id=str(run.turn),
            result=describe_result(result, printed),
            error=None if success else {"message": message, "code": code or result.kind},
            tool_telemetry=result.telemetry or None,
            sandboxed=result.sandboxed,
            shell_execution=msgspec.to_builtins(result.shell),
            file_edits=edits or None,
            model_text=None if success or message == result.text else result.text,
            fence=result.fence,
        )
    )


def describe_result(result: ToolResult, printed: str) -> JsonObject | None:
    """Return the field of a call's event with its text; a failed call has its error instead."""
    if result.kind == "success":
        return {"content": result.text, "detailedContent": result.detail or result.text}
    return {"content": printed} if printed else None


def record_images(run: Run, results: Sequence[ToolResult]) -> None:
    """Emit the images of results as user messages, which must come after all results."""
    for image in (image for result in results for image in result.images):
        run.session.emit(
            UserMessage(
                content=f"Image file at path {image.name}" if image.name else "Image",
                attachments=[
                    {
                        "type": "blob",
                        "data": image.data,
                        "mimeType": image.mime_type,
                        "displayName": image.name,
                    }
                ],
                source="tool",
                interaction_id=run.interaction_id,
            )
        )


def describe_crash(call: ToolCall, error: Exception) -> str:
    from trimtab.loop.compact import clip

    arguments, reason = (clip(text, MAX_ERROR_LENGTH) for text in (call.arguments, str(error)))
    return (
        f"Failed to execute `{call.name}` tool with arguments: {arguments} "
        f"due to error: {type(error).__name__}: {reason}"
    )
