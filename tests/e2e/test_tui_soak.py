"""Nothing typed is lost: random typing, sending, queueing, taking back and cancelling."""

import os

from clikit import Cli, serving
from tuikit import WORD, conversing, type_at_random

KEYSTROKES = int(os.environ.get("TRIMTAB_KEYSTROKES", "3000"))


async def test_no_keystroke_is_lost_while_prompts_are_queued_and_cancelled(cli: Cli) -> None:
    reply = {"text": "some words of an answer\n" * 8, "chunk": 12, "chunk_delay": 0.003}
    async with (
        serving([{**reply, "repeat": 1_000_000}]) as server,
        conversing(cli.use(server)) as terminal,
    ):
        await terminal.ready()
        typed, sent = await type_at_random(terminal, KEYSTROKES, seed=7)
        terminal.type("lastx\r")
        await terminal.until(lambda: "lastx" in history(cli), "the last prompt")
        await terminal.hides("lastx ")
        terminal.type("\x03")
        await terminal.ready()
    assert typed - set(WORD.findall(history(cli))) == set()
    log = "".join(path.read_text() for path in cli.logs())
    assert sent - set(WORD.findall(log)) == set()


def history(cli: Cli) -> str:
    path = cli.home / "prompt-history.jsonl"
    return path.read_text() if path.exists() else ""
