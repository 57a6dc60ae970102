"""The state of a run, and the loop's ports to the session, the inbox and the meter."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from trimtab.contracts.agent import Agent, Mode
from trimtab.contracts.events.envelope import Event, EventData
from trimtab.contracts.messages import Message, ToolCall
from trimtab.contracts.processor import Stop
from trimtab.contracts.provider import AnswerSchema, ToolSpec
from trimtab.contracts.tool import ToolContext

if TYPE_CHECKING:
    from asyncio import Task

__all__ = [
    "Conversation",
    "Inbox",
    "Measured",
    "Meter",
    "Mode",
    "Prompt",
    "Run",
    "SentPrompt",
    "SessionPort",
]


COMMAND = "command"
"""The source of a queued slash command, which the model never sees."""


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt to answer. `display` is what a person sees if it differs from `text`.

    `source` is user, hook, autopilot, jit, skill, tool or command. `transformed` is the text the
    model is shown; it is filled in when the prompt is admitted. `billable` is false for prompts
    nobody typed, so that services that bill by prompt know the agent continued by itself.
    """

    text: str
    display: str | None = None
    transformed: str | None = None
    attachments: tuple[dict[str, Any], ...] = ()
    mode: Literal["enqueue", "immediate"] = "enqueue"
    source: str = "user"
    billable: bool = True
    id: str = ""
    headers: dict[str, str] = {}
    answer_schema: AnswerSchema | None = None
    """The schema of the answer, if it must be JSON."""
    notification: dict[str, Any] | None = None
    """The kind of the `system.notification` it becomes, if it is not a message of somebody."""


class Conversation(Protocol):
    """The messages a model is shown, folded from the log."""

    @property
    def system(self) -> str: ...

    @property
    def messages(self) -> Sequence[Message]: ...

    @property
    def characters(self) -> int:
        """The total length of the messages; kept up to date, so cheap to read."""
        ...

    @property
    def size(self) -> int:
        """The size of the messages in bytes, images included."""
        ...

    compactions: int
    """The number of compactions so far; after the first, the first message is a summary."""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens of the next request, by part."""

    system: int
    tools: int
    conversation: int
    size: int = 0
    """Bytes of the conversation, images included."""

    @property
    def total(self) -> int:
        return self.system + self.tools + self.conversation


class Meter(Protocol):
    """Measures the size of the context, synchronously and fast."""

    def measure(
        self, conversation: Conversation, tools: tuple[ToolSpec, ...], counted: int | None
    ) -> Measured:
        """`counted` is the service's own count of the last prompt."""
        ...


class Inbox(Protocol):
    """Prompts waiting for the loop."""

    def take(self) -> Prompt | None:
        """Remove and return the next prompt to answer, in order."""
        ...

    def take_immediate(self) -> Prompt | None:
        """Remove and return the next steering prompt, to show it before the next model call."""
        ...

    def put(self, prompt: Prompt, *, front: bool = False) -> str:
        """Accept a prompt and return its id."""
        ...

    def give_back(self, prompt: Prompt) -> None:
        """Put back a taken prompt that was not admitted."""
        ...

    def consume(self, prompt: Prompt) -> None:
        """Remove a taken prompt that needs no answer from the model."""
        ...


class SessionPort(Protocol):
    """The session as the loop sees it."""

    id: str

    @property
    def conversation(self) -> Conversation: ...

    @property
    def prompt_tokens(self) -> int | None:
        """Input tokens of the last call, as the service counted them."""
        ...

    def emit(
        self, data: EventData, *, agent_id: str | None = None, ephemeral: bool | None = None
    ) -> Event:
        """Record that something happened. The only way to change what the model sees.

        `ephemeral` overrides the default of the type.
        """
        ...

    async def synced(self) -> None:
        """Wait until every event emitted so far would survive a power cut."""
        ...


class SentPrompt(msgspec.Struct, frozen=True):
    """A request as it was sent, and how many of its tokens the service may have cached."""

    model: str
    system: str
    tools: tuple[ToolSpec, ...]
    messages: tuple[Message, ...]
    tokens: int
    caching: bool


NO_PROMPT = Prompt(text="")


class Run(msgspec.Struct, kw_only=True):
    """The state of one agent at work.

    `turn` counts from 0 for each prompt; `total_turns` counts over the whole drain.
    """

    session: SessionPort
    inbox: Inbox
    agent: Agent
    prompt: Prompt = NO_PROMPT
    """The last prompt shown to the model."""
    origin: Prompt = NO_PROMPT
    """The person's prompt being answered; steering and continuations do not replace it."""
    interaction_id: str = ""
    turn: int = 0
    total_turns: int = 0
    stop: Stop | None = None
    """Set by a tool or a processor: end the run after this turn, for this reason."""
    closing: bool = False
    """Set by a processor: the next model call is the last and offers no tools."""
    pending_calls: tuple[ToolCall, ...] = ()
    """Tool calls left open by a suspended run, to be run before the next model call."""
    suspended: bool = False
    """Set when the session is suspended: open calls stay open instead of being interrupted."""
    measured: Measured | None = None
    """The size of the context before the last model call."""
    last_request: SentPrompt | None = None
    """The last prompt sent to a service that reports cached tokens."""
    notices: list[str] = msgspec.field(default_factory=list)
    """Texts to prepend to the next prompt."""
    warned: set[str] = msgspec.field(default_factory=set)
    """Warnings already given in this run."""
    tasks: "set[Task[None]]" = msgspec.field(default_factory=set)
    """Background work that ends with the session."""

    def tool_context(self, call_id: str) -> ToolContext:
        return self.agent.tool_context(self, call_id)
