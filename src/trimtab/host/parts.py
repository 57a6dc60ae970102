"""Parts: the display model of a session, shared by every user interface.

Every face (terminal, editor, plain text) renders parts and nothing else. A part is immutable; when
something about it changes, the fold returns another part with the same key.
"""

from typing import Any, Literal

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.tools.categories import Category

ToolState = Literal[
    "pending", "running", "completed", "failed", "denied", "rejected", "interrupted"
]


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Something to display. A part replaces earlier parts with the same key.

    `agent_id` is the sub-agent it belongs to, None for the main agent.
    """

    key: str
    agent_id: str | None = None
    timestamp: str = ""
    done: bool = True
    """False while later versions of the part may follow."""


class UserPrompt(Part, frozen=True, kw_only=True):
    """A prompt that was sent to the model. `source` is empty if a person typed it."""

    text: str
    source: str = ""
    delivery: str = ""
    attachments: tuple[JsonObject, ...] = ()


class QueuedPrompt(Part, frozen=True, kw_only=True):
    """A prompt in the queue. `state` is `waiting` until it is sent or withdrawn."""

    text: str
    steering: bool
    state: Literal["waiting", "sent", "withdrawn"] = "waiting"


class Markdown(Part, frozen=True, kw_only=True):
    """The model's message so far. `delta` is the text that this event added."""

    text: str
    delta: str = ""


class Reasoning(Part, frozen=True, kw_only=True):
    """The model's reasoning so far."""

    text: str
    delta: str = ""
    seconds: float | None = None
    """The time it took, once it is done and if that is known."""


class FileEdit(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a call changed. `before` and `after` are digests, None if it did not exist."""

    path: str
    before: str | None = None
    after: str | None = None
    lines_added: int = 0
    lines_removed: int = 0
    created: bool = False


class ReplyEnded(Part, frozen=True, kw_only=True):
    """The model's reply ended, for a reason of the service: stop, tool_calls, length, refusal, …"""

    finish_reason: str


class Subagent(Part, frozen=True, kw_only=True):
    """A sub-agent: running, or ended with a result."""

    name: str
    call_id: str
    description: str = ""
    model: str = ""
    state: Literal["running", "completed", "failed", "cancelled"] = "running"
    error: str = ""
    tool_calls: int | None = None
    tokens: int | None = None
    duration_ms: float | None = None


class ToolInvocation(Part, frozen=True, kw_only=True):
    """A tool call and its progress.

    Its state is `pending` until its permission is decided: faces hold its line back until then.
    `output` is the tail of the output while the call runs, later its whole result; `error` says why
    it failed.
    """

    call_id: str
    name: str
    title: str
    state: ToolState
    arguments: Any = None
    category: Category = "other"
    server: str = ""
    output: str = ""
    delta: str = ""
    detail: str = ""
    error: str = ""
    exit_code: int | None = None
    edits: tuple[FileEdit, ...] = ()
    started: str = ""
    completed: str = ""
    """The time of its result; empty while it runs."""
    sandboxed: bool | None = None
    parent_call_id: str = ""
    agent: Subagent | None = None
    """The sub-agent that works for this call."""
    by_person: bool = False
    """True for a command that the person ran."""

    @property
    def ended(self) -> bool:
        return self.state not in ("pending", "running")


class EditsByOthers(Part, frozen=True, kw_only=True):
    """Files that somebody else changed while the session was at work.

    They are in no call's diff. `count` may be larger than the number of `edits`.
    """

    edits: tuple[FileEdit, ...]
    count: int


class HookRun(Part, frozen=True, kw_only=True):
    """A hook that runs, or has run, and the tool call it was run for, if any."""

    name: str
    state: Literal["running", "completed", "failed"] = "running"
    call_id: str = ""
    error: str = ""
    started: str = ""
    completed: str = ""


class Question(Part, frozen=True, kw_only=True):
    """A question to a person; `done` once any client has answered it.

    `request` is the request as its event carries it. `answer` is the decision in one word, `words`
    what the person said with it.
    """

    request_id: str
    kind: Literal["permission", "input", "plan", "elicitation"]
    request: JsonObject
    call_id: str = ""
    answer: str = ""
    words: str = ""


class Notice(Part, frozen=True, kw_only=True):
    """A message for the person. `kind` is the info, warning or error type of its event."""

    level: Literal["info", "warning", "error", "answer"]
    text: str
    kind: str = ""


class Title(Part, frozen=True, kw_only=True):
    text: str


class ModelInUse(Part, frozen=True, kw_only=True):
    name: str
    effort: str = ""


class ModeInUse(Part, frozen=True, kw_only=True):
    mode: str


class ContextUsage(Part, frozen=True, kw_only=True):
    """The tokens used of the model's context window."""

    used: int
    limit: int


class TodosChanged(Part, frozen=True, kw_only=True):
    """The to-do list changed; a face reads it from the session."""


class Compaction(Part, frozen=True, kw_only=True):
    """A compaction of the history: running while `success` is None, then its outcome."""

    success: bool | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    error: str = ""
