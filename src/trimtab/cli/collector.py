"""Garbage is collected once the program has started: imports make much and free little."""

import gc
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")

STARTED = 1.0
"""Seconds after which whatever is there is taken to be there for good."""


def wake() -> None:
    """Collect from now on; what was made so far is not looked at again."""
    gc.freeze()
    gc.enable()


async def waking(work: Coroutine[None, None, T]) -> T:
    """Do something that may take long; collecting begins a moment after its start."""
    import asyncio

    asyncio.get_running_loop().call_later(STARTED, wake)
    return await work
