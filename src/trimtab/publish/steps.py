"""Runs the steps of a git command as tool calls: rules, hooks, undo and the log see each."""

from collections.abc import Mapping

import msgspec

from trimtab.contracts.errors import ExitCode, TrimtabError
from trimtab.contracts.events.tool import ToolUserRequested
from trimtab.contracts.ids import new_id
from trimtab.contracts.mcp import origin_of
from trimtab.contracts.messages import ToolCall
from trimtab.contracts.run import Run
from trimtab.contracts.tool import ToolResult
from trimtab.loop.execute import execute

SHELL = "bash"


class StepFailed(TrimtabError):
    """Raised when a step was denied or failed; what was done before it stays done."""


class StepDenied(StepFailed):
    """Raised when nobody allowed a step."""

    exit_code = ExitCode.DENIED


class Steps:
    """The tool calls of one git command, made by the person and not by the model."""

    def __init__(self, run: Run) -> None:
        self._run = run

    async def run(self, command: str, description: str) -> str:
        """Run a shell command and return what it printed. Raises `StepFailed`."""
        arguments = {"command": command, "description": description}
        result = await self._call(SHELL, arguments)
        ended = result.shell
        if result.kind != "success" or (ended is not None and ended.exit_code != 0):
            raise _name_failure(result)(
                f"`{command}` was not done: {result.summary or result.text.strip()}"
            )
        return result.text

    async def attempt(self, command: str, description: str) -> str | None:
        """Run a shell command; return None if it fails."""
        try:
            return await self.run(command, description)
        except StepFailed:
            return None

    def find_tool(self, name: str) -> str | None:
        """Return our name for the tool that an MCP server calls `name`, if one is connected."""
        for own_name, tool in self._run.agent.tools.items():
            origin = origin_of(tool)
            if origin is not None and origin.tool == name:
                return own_name
        return None

    async def call(self, tool: str, arguments: Mapping[str, object]) -> str:
        """Call another tool and return its answer. Raises `StepFailed`."""
        result = await self._call(tool, arguments)
        if result.kind != "success":
            raise _name_failure(result)(
                f"{tool} was not done: {result.summary or result.text.strip()}"
            )
        return result.text

    async def _call(self, tool: str, arguments: Mapping[str, object]) -> ToolResult:
        call_id = new_id()
        self._run.session.emit(
            ToolUserRequested(tool_call_id=call_id, tool_name=tool, arguments=arguments)
        )
        encoded = msgspec.json.encode(arguments).decode()
        [result] = await execute(self._run, [ToolCall(id=call_id, name=tool, arguments=encoded)])
        return result


def _name_failure(result: ToolResult) -> type[StepFailed]:
    return StepDenied if result.kind == "denied" else StepFailed
