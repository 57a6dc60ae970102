"""The immutable configuration of an agent, as far as the loop needs it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from trimtab.contracts.messages import ToolCall
from trimtab.contracts.processor import STAGES, Processor, Stage, Stop, find_acting
from trimtab.contracts.provider import Price, Provider, ToolSpec
from trimtab.contracts.tool import AgentsPort, Tool, ToolContext, ToolResult

if TYPE_CHECKING:
    from trimtab.contracts.run import Run

Mode = Literal["interactive", "plan", "autopilot"]


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The model an agent uses, and the parameters of its calls."""

    provider: Provider
    name: str
    stream: bool = True
    effort: str | None = None
    reasoning_summary: bool = False
    """Ask for readable summaries of the reasoning."""
    citations: bool = False
    """Record the sources that the service gives for its replies."""
    parallel_tools: bool = True
    max_output_tokens: int | None = None
    price: Price | None = None
    vision: bool = True
    """Send images to the model."""
    prompt_limit: int | None = None
    """The largest prompt in tokens, if known."""
    byte_limit: int = 20_000_000
    """The largest conversation in bytes; services refuse bodies of 20 to 50 MB."""


class CallParser(msgspec.Struct, frozen=True, kw_only=True):
    """Reads the tool calls a model writes."""

    read_arguments: Callable[[ToolSpec, str], dict[str, Any] | ToolResult]
    """Parses and validates arguments; a `ToolResult` tells the model what is wrong with them."""
    translate: Callable[[ToolCall, Mapping[str, Tool]], ToolCall] = lambda call, _: call
    """Maps a call to a tool known by another name, with its arguments, to ours."""
    advise: Callable[[str], str] = lambda _: ""
    """Suggests what to do instead of calling a tool that does not exist."""


class CallBudget(Protocol):
    """The rest of a spending limit, for model calls made outside the loop."""

    def reserve_call(self, purpose: str, prompt: int, output: int, price: Price | None) -> bool:
        """Set aside the cost of a call of so many tokens. False if it does not fit."""
        ...


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's configuration: its model, its tools and the processors of its loop.

    Immutable: to change a running session, make another agent with `msgspec.structs.replace` and
    assign it to the run. `id` is empty for the main agent of a session.
    """

    model: ModelSettings
    tools: Mapping[str, Tool]
    specs: tuple[ToolSpec, ...]
    """The specifications of `tools`; one tuple for as long as the tools stay the same."""
    pipeline: tuple[Processor, ...]
    """The processors of the loop, in order."""
    acting: Mapping[Stage, tuple[Processor, ...]] = {}
    """By stage, the processors of the pipeline that do something there, in the same order."""
    parser: CallParser
    tool_context: "Callable[[Run, str], ToolContext]"
    """Makes the context in which a tool runs, for a call id."""
    mode: Mode = "interactive"
    budget: CallBudget | None = None
    agents: "Callable[[Run, str], AgentsPort] | None" = None
    """Makes the port by which a tool call reaches the sub-agents of the session."""
    responder: "Callable[[Run], Awaitable[Stop]] | None" = None
    """Answers a recorded prompt instead of the model and the tools: another agent's program."""
    before_idle: "Callable[[Run, Stop], Awaitable[None]] | None" = None
    """Called when the inbox is empty, before the session is reported as idle."""
    has_background_work: "Callable[[], bool] | None" = None
    """Returns True while agents, commands or jobs of the session work in the background."""
    id: str = ""
    caller_id: str = ""
    """The agent that started this one, or the session's id if that is the main agent."""
    depth: int = 0
    """The number of callers above this agent."""

    def __post_init__(self) -> None:
        acting = {stage: find_acting(self.pipeline, stage) for stage in STAGES}
        msgspec.structs.force_setattr(self, "acting", acting)
