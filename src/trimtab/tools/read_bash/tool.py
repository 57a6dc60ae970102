"""The `read_bash` tool: reads new output of a background command."""

import time
from collections.abc import Sequence

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.contracts.workspace import ShellError
from trimtab.tools.description import describe
from trimtab.tools.shells import refuse_shell, render, seconds, shell_end

DELAY = 10


class ReadBash:
    spec = ToolSpec(
        name="read_bash",
        description=describe(__file__),
        parameters={
            "type": "object",
            "properties": {
                "shellId": {"type": "string", "description": "Id of the command"},
                "delay": {"type": "number", "description": "Seconds to wait; default 10"},
            },
            "required": ["shellId"],
        },
    )

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        return ()

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        name, wait = args["shellId"], seconds(args.get("delay", DELAY))
        started = time.monotonic()
        try:
            state = await ctx.workspace.shells.read(name, wait=wait, limit=ctx.output_limit)
        except ShellError as error:
            return refuse_shell(error, "read output from", ctx)
        ended = f"<command with id: {name} exited with exit code {state.exit_code}>"
        return ToolResult(text=render(state, wait, ended), shell=shell_end(state, started))


TOOL = ReadBash()
