"""The six stages at which code may step into the loop."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec

from trimtab.contracts.errors import ModelError
from trimtab.contracts.messages import ToolCall
from trimtab.contracts.permission import Rule
from trimtab.contracts.tool import Access, Tool, ToolResult

if TYPE_CHECKING:
    from trimtab.contracts.run import Prompt, Run


class Stop(msgspec.Struct, frozen=True, kw_only=True):
    """The reason a run ended, and the exit code of a headless run that ends for it.

    Reasons: end_turn, task_complete, blocked, rejected, aborted, error, turn_limit, deadline,
    budget, output_limit, empty_answer, continuation_cap, no_progress,
    agent_stop_block_limit, background_timeout, stop_gate.
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
    """A hook's verdict: `allow` works like --allow-all for this one call."""
    granted: tuple[Rule, ...] = ()
    """Rules that allow something for this call, besides those of the person."""
    only_reads: bool = False
    """True if the call must change nothing, whatever rules allow: in plan mode, for example."""
    _cached_access: list[Any] = []
    """The arguments for which accesses were determined, and the accesses."""

    def touches(self, run: "Run") -> Sequence[Access]:
        """Return what the call would touch; cached until its arguments change."""
        if not self._cached_access or self._cached_access[0] is not self.args:
            ctx = run.tool_context(self.call.id)
            self._cached_access[:] = self.args, tuple(self.tool.access(self.args, ctx))
        accesses: Sequence[Access] = self._cached_access[1]
        return accesses


class CallSkipped(Exception):
    """Raised by `on_request_error` to continue as if the model had answered with nothing."""


class Processor:
    """Base of all code that steps into the loop. A stage that is not overridden does nothing.

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


Stage = Literal[
    "on_prompt", "before_request", "on_request_error", "before_tool", "after_tool", "before_stop"
]
STAGES: tuple[Stage, ...] = get_args(Stage)


def find_acting(processors: Sequence[Processor], stage: Stage) -> tuple[Processor, ...]:
    """Return the processors that override a stage: most do nothing at most of them."""
    nothing = getattr(Processor, stage)
    return tuple(
        processor
        for processor in processors
        if getattr(getattr(processor, stage), "__func__", None) is not nothing
    )
