"""`trimtab mock-model`: a model server on this machine that answers by a script."""

import asyncio
import signal
import sys

from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.text import count
from trimtab.testing import ModelServer, Script

HELP = "run a model server that answers by a script, for tests and for trying things out"


def run(argv: list[str]) -> int:
    from argparse import ArgumentParser

    parser = ArgumentParser(prog="trimtab mock-model", description=f"{HELP.capitalize()}.")
    parser.add_argument("--script", metavar="FILE", required=True, help="the script (YAML or JSON)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="0 chooses a free port")
    parser.add_argument(
        "--once", action="store_true", help="end after the first answer or failure was sent"
    )
    options = parser.parse_args(argv)
    try:
        server = ModelServer(Script.load(options.script), options.host, options.port)
        from trimtab.cli.event_loop import run_async

        run_async(_serve(server, once=options.once))
    except ConfigurationError as error:
        print(f"trimtab mock-model: {error.message}", file=sys.stderr)
        return error.exit_code
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
