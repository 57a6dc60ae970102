"""Tools that end a run by their success."""

from typing import Any

import pytest

from loopkit import EchoTool, make_run
from trimtab.contracts.messages import ToolCall
from trimtab.contracts.processor import PendingCall
from trimtab.contracts.provider import AnswerSchema
from trimtab.contracts.run import Prompt
from trimtab.contracts.tool import ToolResult
from trimtab.loop.processors.terminal_tools import TerminalTools


@pytest.mark.parametrize(
    ("terminal", "kind", "schema", "stops", "closes"),
    [
        (True, "success", False, True, False),
        (True, "success", True, False, True),
        (True, "failure", False, False, False),
        (False, "success", False, False, False),
        (None, "success", False, False, False),
    ],
)
async def test_only_the_success_of_a_terminal_tool_ends_the_run(
    terminal: bool | None, kind: Any, schema: bool, stops: bool, closes: bool
) -> None:
    tool, run = EchoTool(), make_run([])
    if terminal is not None:
        tool.is_terminal = terminal  # type: ignore[attr-defined]
    if schema:
        run.origin = Prompt(text="go", answer_schema=AnswerSchema(schema={}))
    pending = PendingCall(call=ToolCall(id="c", name="echo", arguments=""), tool=tool, args={})
    result = ToolResult(text="x", kind=kind)
    assert await TerminalTools().after_tool(run, pending, result) is result
    assert (run.stop is not None, run.closing) == (stops, closes)
    assert run.stop is None or (run.stop.reason, run.stop.exit_code) == ("end_turn", 0)
