"""The `bash` tool: runs a shell command and returns its output."""

import asyncio
import time
from collections.abc import Sequence

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.contracts.workspace import Command, ShellError
from trimtab.tools.bash.live_output import LiveOutput
from trimtab.tools.description import describe
from trimtab.tools.shells import refuse_shell, render, seconds, shell_end

INITIAL_WAIT = 30


class Bash:
    spec = ToolSpec(
        name="bash",
        description=describe(__file__),
        parameters={
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The command to run"},
                "description": {
                    "type": "string",
                    "description": "What it does, in a few words, for the person who watches",
                    "default": "",
                },
                "mode": {"type": "string", "enum": ["sync", "async"]},
                "shellId": {"type": "string", "description": "A name for the command, if wanted"},
                "initial_wait": {"type": "number", "description": "Seconds to wait in mode sync"},
                "detach": {"type": "boolean", "description": "Let it outlive the session"},
                "pty": {"type": "boolean", "description": "Run it in a terminal"},
            },
            "required": ["command", "description"],
        },
    )

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        return [
            Access(
                kind="shell",
                target=args["command"],
                intention=args["description"],
                detail={"detached": True} if args.get("detach") else {},
            )
        ]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        detached = bool(args.get("detach"))
        command = Command(
            text=args["command"],
            description=args["description"],
            shell_id=args.get("shellId"),
            background=detached or args.get("mode") == "async",
            detached=detached,
            terminal=bool(args.get("pty")) and not detached,
            env=ctx.command_env,
        )
        wait = seconds(args.get("initial_wait", INITIAL_WAIT))
        started = time.monotonic()
        live = LiveOutput(ctx.progress)
        try:
            state = await ctx.workspace.shells.execute(
                command, wait=wait, limit=ctx.output_limit, listener=live.add
            )
        except ShellError as error:
            return refuse_shell(error, "run the command in", ctx)
        except asyncio.CancelledError:
            live.show_end()
            raise
        finally:
            live.close()
        if command.background:
            where = "detached background" if detached else "background"
            return ToolResult(text=f"<command started in {where} with shellId: {state.shell_id}>")
        text = render(state, wait, f"<exited with exit code {state.exit_code}>")
        return ToolResult(text=text, shell=shell_end(state, started))


TOOL = Bash()
