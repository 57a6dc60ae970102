"""`trimtab bridge`: other programs use the models that Trimtab has."""

import asyncio
import json
import os
import signal
import sys

from trimtab.bridge.run import run_command
from trimtab.bridge.targets import ModelMapping
from trimtab.cli.bridge_session import open_bridge
from trimtab.cli.command_parser import Arguments, CommandParser, port_number, positive
from trimtab.cli.event_loop import run_async
from trimtab.cli.parse import parse_duration
from trimtab.contracts.errors import ExitCode, UsageError
from trimtab.contracts.options import LimitOptions, SessionOptions
from trimtab.contracts.provider import CREDIT_USD
from trimtab.runtime.runtime import Runtime


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument(
        "--port", type=port_number, default=0, metavar="N", help="0 chooses a free port"
    )
    parser.add_argument("--model", metavar="MODEL", help="the model for every request")
    parser.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="PATTERN=MODEL",
        help="the model for names that match, such as '*haiku*=MODEL'; may be repeated",
    )
    parser.add_argument(
        "--strict-models",
        action="store_true",
        help="answer 404 for an unknown model instead of using the default model",
    )
    parser.add_json()
    parser.add_argument(
        "--max-turns", type=positive, metavar="N", help="make at most N model calls"
    )
    parser.add_argument(
        "--max-tokens", type=positive, metavar="N", help="spend at most N tokens, all clients"
    )
    money = parser.add_mutually_exclusive_group()
    money.add_argument("--max-budget-usd", type=amount, metavar="USD", help="spend at most this")
    money.add_argument(
        "--max-ai-credits", type=amount, metavar="N", help="spend at most N AI credits"
    )
    parser.add_argument(
        "--deadline", type=duration, metavar="TIME", help="serve for TIME: 90s, 20m, 1h30m"
    )
    parser.add_argument(
        "args", nargs="*", metavar="COMMAND", help="a program to run on the bridge, after --"
    )


def amount(text: str) -> float:
    """Return a positive amount of money. For `type`."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise UsageError(f"A limit of money must be a number above 0, not {text!r}; correct it.")
    return value


def duration(text: str) -> float:
    """Return a time in seconds. For `type`."""
    try:
        return parse_duration(text)
    except ValueError:
        raise UsageError(
            f"--deadline needs a time such as 90s, 20m or 1h30m, not {text!r}; correct it."
        ) from None


def run(args: Arguments) -> int:
    in_credits = args.max_ai_credits is not None
    usd = args.max_ai_credits * CREDIT_USD if in_credits else args.max_budget_usd
    limits = LimitOptions(
        max_turns=args.max_turns,
        max_tokens=args.max_tokens,
        max_usd=usd,
        in_credits=in_credits,
        deadline=args.deadline,
    )
    options = SessionOptions(cwd=os.getcwd(), model=args.model, limits=limits)
    mappings = [ModelMapping.parse(text) for text in args.map]
    return run_async(_serve(args, options, mappings))


async def _serve(args: Arguments, options: SessionOptions, mappings: list[ModelMapping]) -> int:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    runtime = Runtime()
    strict, port = args.strict_models, args.port
    async with open_bridge(runtime, options, mappings=mappings, strict=strict, port=port) as (
        bridge,
        session,
    ):
        if args.json:
            line = {"url": bridge.url, "key": bridge.key, "sessionId": session.id}
            print(json.dumps(line), flush=True)
        if not args.args and not args.json:
            print(f"listening on {bridge.url}\nkey {bridge.key}", flush=True)
            print(f"session {session.id}", file=sys.stderr)
        try:
            async with asyncio.timeout(args.deadline):
                if args.args:
                    return await run_command(args.args, bridge, runtime.env)
                await stopped.wait()
        except TimeoutError:
            print(f"Stopped at the deadline of {args.deadline:g} s.", file=sys.stderr)
            return ExitCode.LIMIT
    return 0
