"""A tool whose command runs behind the fence; a person is asked if the fence stops it."""

from collections.abc import Awaitable, Callable, Sequence

from trimtab.contracts.tool import Access, Args, Tool, ToolContext, ToolResult
from trimtab.permissions.fence_stops import Attempt

Stopped = Callable[[Sequence[Attempt]], Awaitable[ToolResult]]
"""Called with what a command tried to do; returns the result to give instead."""


class FencedTool:
    """Runs a tool, and hands a command that the fence stopped to `on_stop`."""

    def __init__(
        self,
        tool: Tool,
        find_attempts: Callable[[str, int], Sequence[Attempt]],
        on_stop: Stopped,
    ) -> None:
        self.spec = tool.spec
        self.inner = tool
        self._find_attempts = find_attempts
        self._on_stop = on_stop

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        return self.inner.access(args, ctx)

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        result = await self.inner.run(args, ctx)
        if result.kind != "success" or result.shell is None:
            return result
        attempts = self._find_attempts(result.text, result.shell.exit_code)
        return await self._on_stop(attempts) if attempts else result
