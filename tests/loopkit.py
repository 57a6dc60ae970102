"""A run without disk or network: for tests of the loop and of processors."""

from collections import deque
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import msgspec

from conformance import check_lines
from trimtab.contracts.agent import Agent, CallParser, ModelSettings
from trimtab.contracts.events.codec import encode
from trimtab.contracts.events.envelope import Event, EventData
from trimtab.contracts.ids import new_id, timestamp
from trimtab.contracts.processor import Processor
from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.run import Prompt, Run
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.loop.drain import drain
from trimtab.providers.script import Script
from trimtab.providers.scripted import ScriptedProvider
from trimtab.session.session import Projections
from trimtab.tools.arguments import read_arguments


class MemorySession:
    """A session whose log is a list."""

    def __init__(self) -> None:
        self.id = new_id()
        self.events: list[Event] = []
        self.projections = Projections()
        self.syncs = 0

    @property
    def prompt_tokens(self) -> int | None:
        return self.projections.usage.last_input_tokens

    @property
    def conversation(self) -> Any:
        return self.projections.conversation

    def emit(
        self, data: EventData, *, agent_id: str | None = None, ephemeral: bool | None = None
    ) -> Event:
        event = Event(
            type=data.wire_name,
            data=data,
            id=new_id(),
            timestamp=timestamp(),
            parent_id=None,
            ephemeral=data.is_ephemeral if ephemeral is None else ephemeral,
            agent_id=agent_id,
        )
        self.events.append(event)
        self.projections.apply(event)
        return event

    async def synced(self) -> None:
        self.syncs += 1

    def types(self) -> list[str]:
        return [event.type for event in self.events]

    def of(self, wire_name: str) -> list[Any]:
        return [event.data for event in self.events if event.type == wire_name]


class MemoryInbox:
    def __init__(self, prompts: Sequence[Prompt]) -> None:
        self.prompts = deque(prompts)

    def take(self) -> Prompt | None:
        return self.prompts.popleft() if self.prompts else None

    def take_immediate(self) -> Prompt | None:
        for prompt in self.prompts:
            if prompt.mode == "immediate":
                self.prompts.remove(prompt)
                return prompt
        return None

    def put(self, prompt: Prompt, *, front: bool = False) -> str:
        (self.prompts.appendleft if front else self.prompts.append)(prompt)
        return prompt.id

    def give_back(self, prompt: Prompt) -> None:
        self.prompts.appendleft(prompt)

    def consume(self, prompt: Prompt) -> None:
        """Do nothing: `take` has already removed the prompt."""


class EchoTool:
    """Says what it was given; `on_run` may do anything."""

    def __init__(self, name: str = "echo", on_run: Any = None, *, mutates: bool = False) -> None:
        self.spec = ToolSpec(
            name=name,
            description="Says what it was given.",
            parameters={
                "type": "object",
                "properties": {"text": {"type": "string"}},
                "required": ["text"],
            },
        )
        self._on_run = on_run
        self._mutates = mutates
        self.runs: list[Args] = []

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        return [Access(kind="custom-tool", target=self.spec.name, mutates=self._mutates)]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        self.runs.append(args)
        if self._on_run is not None:
            result = await self._on_run(args)
            if result is not None:
                assert isinstance(result, ToolResult)
                return result
        return ToolResult(text=f"echo {args['text']}")


class TouchingTool(EchoTool):
    """Would touch what it is given here."""

    def __init__(self, *accesses: Access) -> None:
        super().__init__()
        self._accesses = accesses

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        return self._accesses


def call(name: str = "echo", **arguments: Any) -> dict[str, Any]:
    """A tool call for a script."""
    return {"name": name, "arguments": arguments}


def no_context(_run: Run, _call_id: str) -> Any:
    """The tools here need none; nothing was printed."""
    return SimpleNamespace(printed="")


def make_run(
    replies: Any,
    *prompts: str | Prompt,
    tools: Sequence[Any] = (),
    processors: Sequence[Processor] = (),
    tool_context: Any = None,
    **options: Any,
) -> Run:
    session = MemorySession()
    by_name = {tool.spec.name: tool for tool in tools}
    waiting = [p if isinstance(p, Prompt) else Prompt(text=p, id=new_id()) for p in prompts]
    mode = options.pop("mode", "interactive")
    agent = Agent(
        model=ModelSettings(
            provider=ScriptedProvider(Script.of(replies)), name="scripted", **options
        ),
        tools=by_name,
        specs=tuple(tool.spec for tool in tools),
        pipeline=tuple(processors),
        parser=CallParser(read_arguments=read_arguments),
        tool_context=tool_context or no_context,
        mode=mode,
    )
    return Run(session=session, inbox=MemoryInbox(waiting), agent=agent)


def change_agent(run: Run, **changes: Any) -> None:
    """Give a run an agent that differs in these fields."""
    run.agent = msgspec.structs.replace(run.agent, **changes)


async def drained(run: Run) -> MemorySession:
    """Drain a run and give its session."""
    run.stop = await drain(run)
    assert isinstance(run.session, MemorySession)
    check_lines(encode(event) for event in run.session.events)
    return run.session
