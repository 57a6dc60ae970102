"""Long-lived programs with pipes."""

import asyncio
import os
from typing import Any

from trimtab.contracts.mcp import Launch
from trimtab.workspace.piped_program import PipedProgram


async def test_the_last_words_of_a_program_are_there_when_it_ends() -> None:
    ended = asyncio.Event()
    found: list[bytes] = []
    running: list[Any] = []

    def note_end() -> None:
        found.append(running[0].errors)
        ended.set()

    for _ in range(20):
        ended.clear()
        launch = Launch(
            argv=("sh", "-c", "echo no licence >&2; exec >&-; read x"),
            cwd="/",
            env=os.environ,
            on_output=lambda _: None,
            on_end=note_end,
        )
        running[:] = [PipedProgram(launch)]
        async with asyncio.timeout(50):
            await ended.wait()
        await running[0].stop()
    assert found == [b"no licence\n"] * 20
