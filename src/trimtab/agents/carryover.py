"""Carries the person's messages, the plan, the todos and the changed files over a compaction."""

import asyncio
import re
from collections.abc import Awaitable, Callable

from trimtab.contracts.events.user import UserMessage
from trimtab.contracts.text import count
from trimtab.loop.compact import Checkpoint, clip
from trimtab.loop.side_calls import Writer
from trimtab.session.checkpoints import add_checkpoint
from trimtab.session.folder import SessionFolder
from trimtab.session.projections.changes import CodeChanges
from trimtab.session.todos import Todos
from trimtab.session.unmasked import read_events

_TITLE = re.compile(r"<checkpoint_title>(.*?)</checkpoint_title>", re.DOTALL)


def leave_out_title(instruction: str) -> str:
    """Return the instruction for a summary without the part that asks for a title."""
    return _TITLE.sub("", instruction).replace("\n\n\n", "\n\n")


class SessionCarryover:
    """The carryover of a main agent.

    It reads the session's log and folder, so that a second compaction carries as much as the
    first. `find_summarizer` returns the model configured for summaries, if there is one.
    """

    def __init__(
        self,
        folder: SessionFolder,
        todos: Todos,
        changes: CodeChanges,
        instruction: str,
        find_summarizer: Callable[[], Awaitable[Writer | None]],
    ) -> None:
        self.instruction = instruction
        self._folder = folder
        self._todos = todos
        self._changes = changes
        self._find_summarizer = find_summarizer

    def summarizer(self) -> Awaitable[Writer | None]:
        return self._find_summarizer()

    async def carry(self, budget: int) -> str:
        messages = await asyncio.to_thread(read_user_messages, self._folder.events)
        todos = await self._todos.read("todos")
        blocks = [
            _block("user_messages", fit(messages, budget // 2)),
            _block("plan", clip(self._folder.read_plan() or "", budget // 4)),
            _block("todos", clip("\n".join(map(_todo, todos)), budget // 8)),
            _block("changed_files", clip("\n".join(self._changes.files), budget // 8)),
        ]
        return "\n\n".join(filter(None, blocks))

    def file(self, summary: str) -> Checkpoint | None:
        found = _TITLE.search(summary)
        title = " ".join(found[1].split())[:80] if found else "Checkpoint"
        number, path = add_checkpoint(self._folder.checkpoints, title, summary)
        return Checkpoint(number=number, path=path, title=title if found else "")


class TaskCarryover:
    """The carryover of a sub-agent: the task it was given."""

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


def read_user_messages(log: str) -> list[str]:
    """Return the person's messages since the conversation was last cleared, in order."""
    messages: list[str] = []
    for event in read_events(log, ("session.context_cleared", "user.message")):
        data = event.data
        if event.type == "session.context_cleared":
            messages.clear()
        elif isinstance(data, UserMessage) and data.source in (None, "user") and data.content:
            messages.append(data.content)
    return messages


def fit(messages: list[str], budget: int) -> str:
    """Return the messages as a numbered list of at most about `budget` characters.

    If they do not all fit: the first, as many of the last as fit, and a note between them.
    """
    if not messages:
        return ""
    share = max(200, budget // 2)
    clipped = [clip(text, share) for text in messages]
    kept: list[tuple[int, str]] = [(0, clipped[0])]
    left = budget - len(clipped[0])
    tail: list[tuple[int, str]] = []
    for number in range(len(clipped) - 1, 0, -1):
        if (left := left - len(clipped[number])) < 0:
            break
        tail.append((number, clipped[number]))
    kept += reversed(tail)
    lines = [f"{number + 1}. {text}" for number, text in kept]
    if missing := len(messages) - len(kept):
        lines.insert(1, f"[see the session's log for {count(missing, 'message')} in between]")
    return "\n".join(lines)


def _block(name: str, text: str) -> str:
    return f"<{name}>\n{text}\n</{name}>" if text else ""


def _todo(row: dict[str, object]) -> str:
    return f"- [{row.get('status', '')}] {row.get('id', '')}: {row.get('title', '')}"
