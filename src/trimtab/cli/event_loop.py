"""Runs asynchronous work for the command line."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from trimtab.cli.collector import waking
from trimtab.cli.streams import is_debugging, say

T = TypeVar("T")


def run_async(work: Coroutine[None, None, T]) -> T:
    """Run a coroutine to its end in a new event loop.

    An exception nobody waits for is told in one line. asyncio itself would print a traceback.
    """

    async def guarded() -> T:
        asyncio.get_running_loop().set_exception_handler(report_lost_exception)
        return await waking(work)

    return asyncio.run(guarded())


def report_lost_exception(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Say that a task or callback failed and nobody was waiting for it."""
    if is_debugging():
        loop.default_exception_handler(context)
        return
    error = context.get("exception")
    what = f"{type(error).__name__}: {error}" if error else context["message"]
    say(f"Internal error ({what}); set TRIMTAB_DEBUG=1 for more.")
