"""The six stages at which code may step into the loop."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from trimtab.contracts.errors import ModelError
from trimtab.contracts.messages import ToolCall
from trimtab.contracts.tool import Access, Tool, ToolResult

if TYPE_CHECKING:
    from trimtab.contracts.run import Prompt, Run


class Stop(msgspec.Struct, frozen=True, kw_only=True):
    """Why a run ended. `exit_code` is that of a headless run which ends so.

    Reasons: end_turn, task_complete, blocked, rejected, aborted, error, turn_limit, deadline,
    budget, continuation_cap, no_progress, agent_stop_block_limit.
    """

    reason: str
    exit_code: int = 0
    message: str = ""


class PendingCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call about to run: the tool and its parsed, validated arguments."""

    call: ToolCall
    tool: Tool
    args: dict[str, Any]
    hook_verdict: Literal["allow", "ask"] | None = None
    """What a hook said about it: `allow` is worth as much as --allow-all for this one call."""
    _known: list[Any] = []
    """The arguments for which the accesses are known, and those."""

    def touches(self, run: "Run") -> Sequence[Access]:
        """What the call would touch; found out once, and again if its arguments are changed."""
        if not self._known or self._known[0] is not self.args:
            ctx = run.tool_context(self.call.id)
            self._known[:] = self.args, tuple(self.tool.access(self.args, ctx))
        accesses: Sequence[Access] = self._known[1]
        return accesses


class CallSkipped(Exception):
    """Raised by `on_request_error`: go on as if the model had said nothing."""


class Processor:
    """Steps into the loop. Every stage does nothing unless overridden; order is the list's order.

    A stage may emit events and may wait. An exception of a stage ends the run as an error.
    """

    async def on_prompt(self, run: "Run", prompt: "Prompt") -> "Prompt | None":
        """A prompt is about to be admitted. Return it, changed or not; None drops it."""
        return prompt

    async def before_request(self, run: "Run") -> Stop | None:
        """A model call is about to be made. Return a `Stop` to end the run instead."""
        return None

    async def on_request_error(self, run: "Run", error: ModelError, attempt: int) -> bool:
        """A model call failed (`attempt` counts from 0). Return True to have it made again."""
        return False

    async def before_tool(self, run: "Run", pending: PendingCall) -> PendingCall | ToolResult:
        """A tool is about to run. Return the call, changed or not, or a result to give instead."""
        return pending

    async def after_tool(self, run: "Run", pending: PendingCall, result: ToolResult) -> ToolResult:
        """A tool has run. Return its result, changed or not."""
        return result

    async def before_stop(self, run: "Run", stop: Stop) -> "Prompt | Stop | None":
        """The model asked for no more tools. Return a prompt to go on with, or another `Stop`."""
        return None
