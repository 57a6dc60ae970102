"""What a compaction must not lose: the person's words, the plan, the todos, the changed files."""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable

from trimtab.config.files import make_private_dir, replace_file
from trimtab.contracts.events.user import UserMessage
from trimtab.contracts.ids import timestamp
from trimtab.contracts.text import count
from trimtab.loop.compact import Checkpoint, clip
from trimtab.loop.side_calls import Writer
from trimtab.session.folder import SessionFolder
from trimtab.session.projections.changes import CodeChanges
from trimtab.session.todos import read_table
from trimtab.session.unmasked import read_events

INDEX = "# Checkpoints\n\n| # | Title | File | When |\n|---|---|---|---|\n"
_TITLE = re.compile(r"<checkpoint_title>(.*?)</checkpoint_title>", re.DOTALL)


class SessionCarryover:
    """Reads the session's own log and folder, so a second compaction carries as much as the first.

    `find_summarizer` gives the model that was chosen for summaries, if one was.
    """

    def __init__(
        self,
        folder: SessionFolder,
        changes: CodeChanges,
        instruction: str,
        find_summarizer: Callable[[], Awaitable[Writer | None]],
    ) -> None:
        self.instruction = instruction
        self._folder = folder
        self._changes = changes
        self._find_summarizer = find_summarizer

    def summarizer(self) -> Awaitable[Writer | None]:
        return self._find_summarizer()

    async def carry(self, budget: int) -> str:
        words = await asyncio.to_thread(read_words, self._folder.events)
        todos = await asyncio.to_thread(read_table, self._folder.database, "todos")
        blocks = [
            _block("user_messages", fit(words, budget // 2)),
            _block("plan", clip(self._folder.read_plan() or "", budget // 4)),
            _block("todos", clip("\n".join(map(_todo, todos)), budget // 8)),
            _block("changed_files", clip("\n".join(self._changes.files), budget // 8)),
        ]
        return "\n\n".join(filter(None, blocks))

    def file(self, summary: str) -> Checkpoint | None:
        folder = self._folder.checkpoints
        make_private_dir(folder)
        numbers = [name.partition("-")[0] for name in os.listdir(folder)]
        number = 1 + max((int(text) for text in numbers if text.isdecimal()), default=0)
        found = _TITLE.search(summary)
        title = " ".join(found[1].split())[:80] if found else "Checkpoint"
        slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "checkpoint"
        name = f"{number:03}-{slug}.md"
        path = os.path.join(folder, name)
        replace_file(path, summary.encode("utf-8", "replace"))
        index = os.path.join(folder, "index.md")
        before = _read(index) or INDEX
        row = f"| {number} | {title.replace('|', ' ')} | {name} | {timestamp()} |\n"
        replace_file(index, (before + row).encode("utf-8", "replace"))
        return Checkpoint(number=number, path=path)


class TaskCarryover:
    """For an agent that works for another one: what must not be lost is the task it was given."""

    def __init__(
        self,
        task: str,
        instruction: str,
        find_summarizer: Callable[[], Awaitable[Writer | None]],
    ) -> None:
        self.instruction = instruction
        self._task = task
        self._find_summarizer = find_summarizer

    def summarizer(self) -> Awaitable[Writer | None]:
        return self._find_summarizer()

    async def carry(self, budget: int) -> str:
        return _block("task", clip(self._task, budget))

    def file(self, summary: str) -> Checkpoint | None:
        return None


def read_words(log: str) -> list[str]:
    """What the person typed, in order, since the conversation was last cleared."""
    words: list[str] = []
    for event in read_events(log, ("session.context_cleared", "user.message")):
        said = event.data
        if event.type == "session.context_cleared":
            words.clear()
        elif isinstance(said, UserMessage) and said.source in (None, "user") and said.content:
            words.append(said.content)
    return words


def fit(words: list[str], budget: int) -> str:
    """All of them if they fit; else the first, and as many of the last as fit, and a remark."""
    if not words:
        return ""
    share = max(200, budget // 2)
    clipped = [clip(text, share) for text in words]
    kept: list[tuple[int, str]] = [(0, clipped[0])]
    left = budget - len(clipped[0])
    tail: list[tuple[int, str]] = []
    for number in range(len(clipped) - 1, 0, -1):
        if (left := left - len(clipped[number])) < 0:
            break
        tail.append((number, clipped[number]))
    kept += reversed(tail)
    lines = [f"{number + 1}. {text}" for number, text in kept]
    if missing := len(words) - len(kept):
        lines.insert(1, f"[see the session's log for {count(missing, 'message')} in between]")
    return "\n".join(lines)


def _block(name: str, text: str) -> str:
    return f"<{name}>\n{text}\n</{name}>" if text else ""


def _todo(row: dict[str, object]) -> str:
    return f"- [{row.get('status', '')}] {row.get('id', '')}: {row.get('title', '')}"


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""
