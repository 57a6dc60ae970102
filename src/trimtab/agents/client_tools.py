"""Tools that a client implements: a call is emitted as an event, and the client answers it."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from trimtab.agents.questions import Questions
from trimtab.contracts.events.envelope import Event, EventData, JsonObject
from trimtab.contracts.events.tool import ExternalToolCompleted, ExternalToolRequested
from trimtab.contracts.ids import new_id
from trimtab.contracts.messages import Image
from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.tools.output import limit_output

_KINDS = {
    "success": "success",
    "failure": "failure",
    "rejected": "rejected",
    "denied": "denied",
    "timeout": "failure",
}


class ToolDefinition(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A tool as a client describes it."""

    name: str
    description: str = ""
    parameters: JsonObject | None = None
    skip_permission: bool = False
    overrides_built_in_tool: bool = False
    is_terminal: bool = False


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """A client's answer to a tool call: a result, or an error if the call could not run."""

    result: str | JsonObject | None = None
    error: str | None = None


class ExternalTool:
    """A tool that a client implements.

    Its effects are unknown, so a call counts as a change, unless the client declares that it
    needs no permission.
    """

    def __init__(
        self,
        definition: ToolDefinition,
        questions: Questions,
        emit: Callable[[EventData], Event],
        cwd: str,
    ) -> None:
        self.definition = definition
        self.is_terminal = definition.is_terminal
        self.spec = ToolSpec(
            name=definition.name,
            description=definition.description,
            parameters=definition.parameters or {"type": "object", "properties": {}},
        )
        self._questions = questions
        self._emit = emit
        self._cwd = cwd

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        if self.definition.skip_permission:
            return [Access(kind="none", target=self.spec.name, mutates=False)]
        return [
            Access(
                kind="custom-tool",
                target=self.spec.name,
                intention=f"Call {self.spec.name}",
                detail={
                    "toolName": self.spec.name,
                    "toolDescription": self.spec.description,
                    "args": dict(args),
                },
            )
        ]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        request_id = new_id()
        self._emit(
            ExternalToolRequested(
                request_id=request_id,
                session_id=ctx.session_id,
                tool_call_id=ctx.call_id,
                tool_name=self.spec.name,
                arguments=dict(args),
                working_directory=self._cwd,
            )
        )
        try:
            outcome: Outcome = await self._questions.wait(request_id)
        finally:
            self._emit(ExternalToolCompleted(request_id=request_id))
        result = read_outcome(self.spec.name, args, outcome)
        text = await limit_output(result.text, ctx)
        return result if text is result.text else msgspec.structs.replace(result, text=text)


def read_modified(result: JsonObject) -> ToolResult:
    """Return a result that a hook has modified."""
    return read_outcome("", {}, Outcome(result=result))


def read_outcome(name: str, args: Args, outcome: Outcome) -> ToolResult:
    """Return a client's answer as a tool result. The model does not see the client's own error."""
    if outcome.error is not None or outcome.result is None:
        arguments = msgspec.json.encode(dict(args)).decode()
        return ToolResult(
            text=f"Failed to execute `{name}` tool with arguments: {arguments} due to error: "
            "Error: Tool execution failed",
            summary=outcome.error or "The client returned no result.",
            kind="failure",
        )
    if isinstance(outcome.result, str):
        return ToolResult(text=outcome.result)
    result = outcome.result
    telemetry = result.get("toolTelemetry")
    error = result.get("error")
    return ToolResult(
        text=str(result.get("textResultForLlm") or ""),
        kind=_KINDS.get(str(result.get("resultType", "success")), "failure"),  # type: ignore[arg-type]
        detail=result.get("sessionLog") if isinstance(result.get("sessionLog"), str) else None,
        summary=error if isinstance(error, str) else None,
        images=tuple(filter(None, map(_image, result.get("binaryResultsForLlm") or ()))),
        telemetry=telemetry if isinstance(telemetry, dict) else {},
    )


def _image(binary: Any) -> Image | None:
    if not isinstance(binary, dict) or not str(binary.get("mimeType", "")).startswith("image/"):
        return None
    return Image(
        data=str(binary.get("data", "")),
        mime_type=str(binary["mimeType"]),
        name=binary.get("description"),
    )
