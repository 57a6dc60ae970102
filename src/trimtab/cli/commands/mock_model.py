"""`trimtab mock-model`: a model server on this machine that answers from a script."""

import asyncio
import signal
import sys

from trimtab.cli.command_parser import Arguments, CommandParser, port_number
from trimtab.cli.event_loop import run_async
from trimtab.contracts.text import count
from trimtab.testing import ModelServer, Script


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument("--script", metavar="FILE", required=True, help="the script (YAML or JSON)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument(
        "--port", type=port_number, default=0, metavar="N", help="0 chooses a free port"
    )
    parser.add_argument("--once", action="store_true", help="end after the first answer or failure")


def run(args: Arguments) -> int:
    server = ModelServer(Script.load(args.script), args.host, args.port)
    run_async(_serve(server, once=args.once))
    return 0


async def _serve(server: ModelServer, *, once: bool) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    async with server, asyncio.TaskGroup() as group:
        print(f"listening on {server.url}", flush=True)
        ends = [group.create_task(stopped.wait())]
        if once:
            ends.append(group.create_task(server.answered.wait()))
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            end.cancel()
    usage = server.usage
    print(
        f"{count(usage.requests, 'request')}, {count(usage.answers, 'answer')}, "
        f"{count(usage.errors, 'error')}, {count(usage.input_tokens, 'input token')}, "
        f"{count(usage.output_tokens, 'output token')}",
        file=sys.stderr,
    )
