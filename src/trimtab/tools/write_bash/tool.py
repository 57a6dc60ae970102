"""The `write_bash` tool: sends text and keys to a background command."""

import re
import time
from collections.abc import Sequence

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.contracts.workspace import ShellError
from trimtab.tools.description import describe
from trimtab.tools.shells import refuse_shell, render, seconds, shell_end

DELAY = 10
KEY = (
    r"\{(enter|tab|space|escape|backspace|delete|up|down|left|right|home|end"
    r"|ctrl-c|ctrl-d|ctrl-z)\}"
)


class WriteBash:
    spec = ToolSpec(
        name="write_bash",
        description=describe(__file__),
        parameters={
            "type": "object",
            "properties": {
                "shellId": {"type": "string", "description": "Id of the command"},
                "input": {"type": "string", "description": "Text and keys to send"},
                "delay": {"type": "number", "description": "Seconds to wait; default 10"},
            },
            "required": ["shellId", "input"],
        },
    )

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        # Input to a running shell or interpreter is judged as a command.
        intention = f"Send input to command {args['shellId']}"
        return [Access(kind="shell", target=args["input"], intention=intention)]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        name, wait = args["shellId"], seconds(args.get("delay", DELAY))
        started = time.monotonic()
        try:
            await ctx.workspace.shells.write(name, parse_keys(args["input"]))
            state = await ctx.workspace.shells.read(name, wait=wait, limit=ctx.output_limit)
        except ShellError as error:
            return refuse_shell(error, "write to", ctx)
        ended = f"<command with id: {name} exited with exit code {state.exit_code}>"
        return ToolResult(text=render(state, wait, ended), shell=shell_end(state, started))


def parse_keys(text: str) -> list[str | bytes]:
    """Split input into text, as bytes, and names of keys."""
    pieces = re.split(KEY, text)
    keys: list[str | bytes] = []
    for index, piece in enumerate(pieces):
        if index % 2:
            keys.append(piece)
        elif piece:
            keys.append(piece.encode("utf-8", "replace"))
    return keys


TOOL = WriteBash()
