"""What a face shows of a session: a small vocabulary of parts.

Every face (terminal, editor, plain text) renders parts and nothing else. A part is immutable; when
something about it changes, the fold gives another one with the same key.
"""

from typing import Any, Literal

import msgspec

from trimtab.contracts.events.envelope import JsonObject

ToolState = Literal[
    "pending", "running", "completed", "failed", "denied", "rejected", "interrupted"
]


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Something to show. Parts with one key replace each other; `agent_id` names a sub-agent."""

    key: str
    agent_id: str | None = None
    timestamp: str = ""
    done: bool = True
    """False while more of the same part is to come."""


class UserPrompt(Part, frozen=True, kw_only=True):
    """A prompt the model was shown. `source` is empty for what a person typed."""

    text: str
    source: str = ""
    delivery: str = ""
    attachments: tuple[JsonObject, ...] = ()


class QueuedPrompt(Part, frozen=True, kw_only=True):
    """A prompt that waits. `state` is `waiting` until it is sent or taken back."""

    text: str
    steering: bool
    state: Literal["waiting", "sent", "withdrawn"] = "waiting"


class Markdown(Part, frozen=True, kw_only=True):
    """The model's words so far. `delta` is what came with this event."""

    text: str
    delta: str = ""


class Reasoning(Part, frozen=True, kw_only=True):
    """What the model thought so far."""

    text: str
    delta: str = ""


class FileEdit(msgspec.Struct, frozen=True, kw_only=True):
    """One file that a call changed. `before` and `after` are digests; None where nothing is."""

    path: str
    before: str | None = None
    after: str | None = None
    lines_added: int = 0
    lines_removed: int = 0
    created: bool = False


class ToolInvocation(Part, frozen=True, kw_only=True):
    """A tool call and how far it is.

    It is held back, state `pending`, while a permission for it is asked. `output` is the tail of
    what a running call printed, later its whole result; `error` says why it failed.
    """

    call_id: str
    name: str
    title: str
    state: ToolState
    arguments: Any = None
    server: str = ""
    output: str = ""
    delta: str = ""
    detail: str = ""
    error: str = ""
    exit_code: int | None = None
    edits: tuple[FileEdit, ...] = ()
    started: str = ""
    sandboxed: bool | None = None
    parent_call_id: str = ""

    @property
    def ended(self) -> bool:
        return self.state not in ("pending", "running")


class Question(Part, frozen=True, kw_only=True):
    """A question that waits for somebody; `done` once it was answered, here or elsewhere.

    `request` is the request as its event carries it. `answer` says in a word what was decided.
    """

    request_id: str
    kind: Literal["permission", "input", "plan", "elicitation"]
    request: JsonObject
    call_id: str = ""
    answer: str = ""


class Subagent(Part, frozen=True, kw_only=True):
    """A sub-agent at work, or what became of it."""

    name: str
    call_id: str
    description: str = ""
    model: str = ""
    state: Literal["running", "completed", "failed", "cancelled"] = "running"
    error: str = ""
    tool_calls: int | None = None
    tokens: int | None = None
    duration_ms: float | None = None


class Notice(Part, frozen=True, kw_only=True):
    """A remark for the person. `kind` is the type the event gives it."""

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
    """How full the model's window is."""

    used: int
    limit: int


class TodosChanged(Part, frozen=True, kw_only=True):
    """The to-do list changed; a face reads it from the session."""


class Compaction(Part, frozen=True, kw_only=True):
    """The history is being summarised, or was."""

    success: bool | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    error: str = ""
