"""What the loop is given: prompts, the session as it sees it, and the parts it works with."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from trimtab.contracts.agents import Assignment
from trimtab.contracts.events.envelope import Event, EventData
from trimtab.contracts.messages import Message, ToolCall
from trimtab.contracts.processor import Processor, Stop
from trimtab.contracts.provider import AnswerSchema, Price, Provider, ToolSpec
from trimtab.contracts.tool import Tool, ToolContext, ToolResult

if TYPE_CHECKING:
    from asyncio import Task

Mode = Literal["interactive", "plan", "autopilot"]


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """Something to answer. `display` is what a person sees if it differs from `text`.

    `source` is user, hook, autopilot, jit, skill or tool. `transformed` is the text the model is
    shown; it is filled in when the prompt is admitted. `billable` is false for prompts nobody
    typed: services that count by prompt are told that the agent went on by itself.
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
    """What the answer must look like, where it is to be JSON."""


class Conversation(Protocol):
    """What the model sees, folded from the log."""

    @property
    def system(self) -> str: ...

    @property
    def messages(self) -> Sequence[Message]: ...

    @property
    def characters(self) -> int:
        """How long the messages are together; costs nothing to ask again."""
        ...

    @property
    def size(self) -> int:
        """The same in bytes, images included."""
        ...


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of the next prompt, by what they are for."""

    system: int
    tools: int
    conversation: int
    size: int = 0
    """Bytes of the conversation, images included."""

    @property
    def total(self) -> int:
        return self.system + self.tools + self.conversation


class Meter(Protocol):
    """Measures how full the context is, quickly and without waiting for anything."""

    def measure(
        self, conversation: Conversation, tools: tuple[ToolSpec, ...], counted: int | None
    ) -> Measured:
        """`counted` is the service's own count of the last prompt."""
        ...


class Purse(Protocol):
    """What is left of a budget, for calls beside those of the loop."""

    def reserve_call(self, purpose: str, prompt: int, output: int, price: Price | None) -> bool:
        """Hold back what a call of so many tokens may cost; False if that is not left."""
        ...


class Inbox(Protocol):
    """Prompts waiting for the loop."""

    def take(self) -> Prompt | None:
        """The next prompt to answer, in order."""
        ...

    def take_immediate(self) -> Prompt | None:
        """The next steering prompt, to be shown to the model before its next call."""
        ...

    def put(self, prompt: Prompt, *, front: bool = False) -> str:
        """Accept a prompt; returns its id."""
        ...

    def give_back(self, prompt: Prompt) -> None:
        """Undo a take: the prompt was not admitted."""
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

    def emit(self, data: EventData, *, agent_id: str | None = None) -> Event:
        """Record that something happened. The only way to change what the model sees."""
        ...

    async def synced(self) -> None:
        """Wait until every event emitted so far would survive a power cut."""
        ...


class Sent(msgspec.Struct, frozen=True):
    """What a prompt was made of, and how many tokens of it the service may have kept."""

    model: str
    system: str
    tools: tuple[ToolSpec, ...]
    messages: tuple[Message, ...]
    tokens: int
    caching: bool


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a run that processors and the loop read."""

    model: str
    stream: bool = True
    effort: str | None = None
    parallel_tools: bool = True
    max_output_tokens: int | None = None
    price: Price | None = None
    vision: bool = True
    """Whether images are sent to the model."""
    prompt_limit: int | None = None
    """How many tokens a prompt may have, where that is known."""
    byte_limit: int = 20_000_000
    """How large a conversation may get on the wire; services refuse bodies of 20 to 50 MB."""


class Run(msgspec.Struct, kw_only=True):
    """One drain of the inbox: the parts the loop works with, and the little state it has itself.

    `turn` counts from 0 for each prompt; `total_turns` counts over the whole drain.
    """

    session: SessionPort
    inbox: Inbox
    provider: Provider
    tools: Mapping[str, Tool]
    specs: tuple[ToolSpec, ...]
    processors: Sequence[Processor]
    options: RunOptions
    tool_context: Callable[[str], ToolContext]
    read_arguments: Callable[[ToolSpec, str], dict[str, Any] | ToolResult]
    """Parses and checks what a model wrote; a result tells the model what is wrong with it."""
    translate: Callable[[ToolCall, Mapping[str, Tool]], ToolCall] = lambda call, _: call
    """A call in our words, where a model knows a tool by another name."""
    advise: Callable[[str], str] = lambda _: ""
    """What to do instead of calling a tool of this name, which is not there."""
    mode: Mode = "interactive"
    interaction_id: str = ""
    turn: int = 0
    total_turns: int = 0
    headers: dict[str, str] = {}
    billable: bool = True
    answer_schema: AnswerSchema | None = None
    originating_id: str = ""
    """The prompt that is being answered."""
    agent_id: str = ""
    """Of a sub-agent its own; the main agent has none."""
    caller_id: str = ""
    """Of a sub-agent the agent that asked, or the session's id for the main one."""
    stop: Stop | None = None
    """Set by a tool or a processor: end the run after this turn, for this reason."""
    left: tuple[ToolCall, ...] = ()
    """Calls of a turn that was left before they were answered: to be run before the next call."""
    suspended: bool = False
    """Set when the run is left so: calls that end now are not interrupted, they wait."""
    closing: bool = False
    """Set by a processor: the next call is the last, and no tools are offered in it."""
    remarks: set[str] = msgspec.field(default_factory=set)
    """What need not be said to the person a second time."""
    context: Measured | None = None
    """How full the window was before the last call."""
    purse: Purse | None = None
    """Where a limit on spending is set."""
    background: "set[Task[None]]" = msgspec.field(default_factory=set)
    """What goes on beside the loop and ends with the session."""
    sent: Sent | None = None
    """The last prompt whose service counts what it keeps of prompts."""
    notices: list[str] = msgspec.field(default_factory=list)
    """What is to be put before the words of the next prompt."""
    delegate: Callable[[str, Assignment], Awaitable[ToolResult]] | None = None
    """Has another agent do something, on behalf of a tool call."""
    depth: int = 0
    """How many agents up the main one is."""
    children: "dict[str, Run]" = msgspec.field(default_factory=dict)
    """The agents that work for this one now, by id."""
    before_idle: Callable[[Stop], Awaitable[None]] | None = None
    """Called when nothing is left to answer, before the session is said to be idle."""
