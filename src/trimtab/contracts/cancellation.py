"""Ends the cancellation of a task that goes on after it was cancelled."""

import asyncio


def end_cancellation() -> None:
    """Let the current task go on as if it had not been cancelled.

    Call it where `CancelledError` is handled and not raised again. Before Python 3.11.3,
    `asyncio.timeout` raises `CancelledError` instead of `TimeoutError` in a task that still counts
    as cancelled.
    """
    task = asyncio.current_task()
    while task is not None and task.cancelling():
        task.uncancel()
