"""Runs whose changes are to be taken back, and trees to compare."""

import os
from pathlib import Path
from typing import Any

from clikit import Cli, serving


def tree(root: Path) -> dict[str, tuple[int, bytes]]:
    """Everything below a folder but git's own, with modes; of a link its target."""
    found = {}
    for path in sorted(root.rglob("*")):
        if ".git" in path.relative_to(root).parts:
            continue
        content = b"" if path.is_dir() else path.read_bytes()
        if path.is_symlink():
            content = os.readlink(path).encode()
        found[str(path.relative_to(root))] = path.lstat().st_mode, content
    return found


async def work(cli: Cli, *turns: list[dict[str, Any]], flags: tuple[str, ...] = ()) -> None:
    """One turn for each list of calls, all in one session."""
    replies: list[dict[str, Any]] = []
    for calls in turns:
        replies += [*({"tools": [call]} for call in calls), {"text": "Done."}]
    async with serving(replies) as server:
        cli.use(server)
        for number, _ in enumerate(turns):
            again = ("--continue",) if number else ()
            outcome = await cli.ask(f"turn {number + 1}", *again, *flags)
            assert outcome.code == 0, outcome.notes
