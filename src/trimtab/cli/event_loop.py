"""Runs asynchronous work for the command line."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from trimtab.cli.garbage_collection import enable_collection
from trimtab.cli.streams import is_debugging, say

T = TypeVar("T")

START_UP = 1.0
"""Seconds after which start-up counts as done, and garbage is collected."""


def run_async(work: Coroutine[None, None, T]) -> T:
    """Run a coroutine to its end in a new event loop.

    An exception that nobody awaits is reported in one line; asyncio would print a traceback.
    """

    async def guarded() -> T:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(report_lost_exception)
        loop.call_later(START_UP, enable_collection)
        return await work

    return asyncio.run(guarded())


def report_lost_exception(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Report the exception of a task or callback that nobody awaits."""
    if is_debugging():
        loop.default_exception_handler(context)
        return
    error = context.get("exception")
    cause = f"{type(error).__name__}: {error}" if error else context["message"]
    say(f"Internal error ({cause}); set TRIMTAB_DEBUG=1 for more.")
