"""Tools that live in a client: the call is published, the client answers it."""

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
    """What a client says a call came to: a result, or the fact that it could not be run."""

    result: str | JsonObject | None = None
    error: str | None = None


class ExternalTool:
    """One tool of one client.

    Its effects are unknown, so it counts as changing things, unless the client says that no
    permission is needed for it.
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
    """A result as a hook put it."""
    return read_outcome("", {}, Outcome(result=result))


def read_outcome(name: str, args: Args, outcome: Outcome) -> ToolResult:
    """A client's answer as a result. What went wrong inside the client stays there."""
    if outcome.error is not None or outcome.result is None:
        written = msgspec.json.encode(dict(args)).decode()
        return ToolResult(
            text=f"Failed to execute `{name}` tool with arguments: {written} due to error: "
            "Error: Tool execution failed",
            summary=outcome.error or "The client gave no result.",
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
