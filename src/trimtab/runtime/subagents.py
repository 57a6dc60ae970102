"""Agents that work for another one: each is a run of its own in the same session and log."""

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, TypeVar

from trimtab.contracts.agents import Assignment
from trimtab.contracts.customization import AgentDefinition
from trimtab.contracts.errors import TrimtabError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.subagent import (
    SubagentCompleted,
    SubagentConfigured,
    SubagentFailed,
    SubagentStarted,
)
from trimtab.contracts.events.system import SystemMessage
from trimtab.contracts.ids import new_id, timestamp
from trimtab.contracts.messages import AssistantMessage
from trimtab.contracts.processor import PendingCall, Processor, Stop
from trimtab.contracts.run import Prompt, Run, RunOptions
from trimtab.contracts.tool import Tool, ToolResult
from trimtab.loop.drain import answer
from trimtab.loop.ledger import Ledger
from trimtab.loop.processors.compaction import Compaction
from trimtab.loop.processors.context_usage import ContextUsage
from trimtab.loop.processors.images import ImageRemoval
from trimtab.loop.processors.limits import TurnLimit
from trimtab.loop.processors.plan_mode import PlanMode
from trimtab.loop.processors.progress import DEFAULT as REPEATS
from trimtab.loop.processors.progress import Progress
from trimtab.loop.processors.result_limit import ResultLimit
from trimtab.loop.processors.retry import Retry
from trimtab.loop.processors.skills import Skills
from trimtab.loop.processors.stop_gate import StopGate
from trimtab.permissions.processor import Permissions
from trimtab.prompts.assemble import read_text
from trimtab.providers.meter import ContextMeter, count_text
from trimtab.providers.windows import DEFAULT
from trimtab.runtime.build import build_fallbacks, find_writer
from trimtab.runtime.call_context import CallContext, make_context
from trimtab.runtime.crew import Crew
from trimtab.runtime.keeper import TaskKeeper
from trimtab.runtime.limits import set_budget
from trimtab.runtime.models import Chosen
from trimtab.runtime.recorder import Recorder
from trimtab.runtime.system_prompt import PromptCase, build_agent_prompt
from trimtab.runtime.toolset import is_named
from trimtab.session.agent import AgentSession
from trimtab.tools.arguments import read_arguments
from trimtab.tools.catalog import advise, translate

if TYPE_CHECKING:
    from trimtab.hooks.caller import HookCaller

NOT_FOR_AGENTS = frozenset(("ask_user", "exit_plan_mode", "task_complete", "report_intent"))
"""Tools that speak to a person, or end what a person asked for."""

Part = TypeVar("Part", bound=Processor)


class Mailbox:
    """The prompts of one sub-agent: its task, and what a hook sends it back with."""

    def __init__(self, task: Prompt) -> None:
        self._prompts = deque((task,))

    def take(self) -> Prompt | None:
        return self._prompts.popleft() if self._prompts else None

    def take_immediate(self) -> Prompt | None:
        return None

    def put(self, prompt: Prompt, *, front: bool = False) -> str:
        self._prompts.append(prompt)
        return prompt.id

    def give_back(self, prompt: Prompt) -> None:
        self._prompts.appendleft(prompt)


class Recording(Processor):
    """The recorder of the session, for the tools of another agent: their effects count as well."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    async def before_tool(self, run: Run, pending: PendingCall) -> PendingCall | ToolResult:
        return await self._recorder.before_tool(run, pending)

    async def after_tool(self, run: Run, pending: PendingCall, result: ToolResult) -> ToolResult:
        return await self._recorder.after_tool(run, pending, result)


class Subagent:
    """One agent at its task, from the event that says it started to the one that says it ended."""

    def __init__(self, crew: Crew, main: Run, caller: Run, call_id: str) -> None:
        self._crew = crew
        self._main = main
        self._caller = caller
        self._call_id = call_id
        self._session = AgentSession(crew.place.session, new_id(), call_id)
        self._hooks: HookCaller | None = None
        self._about: JsonObject = {}
        self._began = time.perf_counter()
        self._task: asyncio.Task[ToolResult] | None = None
        self._ended = False
        self.about: JsonObject = {}

    async def perform(self, task: Assignment) -> ToolResult:
        """Do the task; the agent's last words are the result."""
        self._crew.agents[self._session.agent_id] = self
        try:
            try:
                agent = self._crew.find(task.agent_type)
                chosen = await self._crew.choose(self._caller, agent, task)
                run = self._build(agent, chosen, task)
            except TrimtabError as error:
                return ToolResult(text=f"No agent was started: {error.message}", kind="failure")
            self._caller.children[self._session.agent_id] = run
            self.about = self._describe(run, agent, task)
            self._task = asyncio.get_running_loop().create_task(self._work(run, agent))
            return await self._task
        finally:
            del self._crew.agents[self._session.agent_id]
            child = self._caller.children.pop(self._session.agent_id, None)
            await end_jobs(child)
            self._session.leave()

    def end(self) -> bool:
        """Stop the agent; the one that asked goes on."""
        if self._task is None or self._task.done():
            return False
        self._ended = True
        return self._task.cancel()

    def _describe(self, run: Run, agent: AgentDefinition, task: Assignment) -> JsonObject:
        return {
            "type": "agent",
            "id": self._session.agent_id,
            "toolCallId": self._call_id,
            "agentType": agent.name,
            "description": task.description,
            "prompt": task.prompt,
            "model": run.options.model,
            "executionMode": "sync",
            "status": "running",
            "startedAt": timestamp(),
        }

    def _build(self, agent: AgentDefinition, chosen: Chosen, task: Assignment) -> Run:
        crew, caller = self._crew, self._caller
        recorder, output = find_part(self._main, Recorder), crew.options.large_output

        def tool_context(call_id: str) -> CallContext:
            return make_context(run, crew.place, recorder, output, call_id)

        async def delegate(call_id: str, task: Assignment) -> ToolResult:
            return await Subagent(crew, self._main, run, call_id).perform(task)

        run = Run(
            session=self._session,
            inbox=Mailbox(Prompt(text=task.prompt, source="agent", billable=False, id=new_id())),
            provider=chosen.provider,
            tools={},
            specs=(),
            processors=self._build_processors(agent, chosen, task),
            options=RunOptions(
                model=chosen.model,
                stream=crew.options.stream,
                effort=task.effort
                or crew.setting(agent, "effortLevel")
                or agent.effort
                or caller.options.effort,
                price=chosen.price,
                prompt_limit=chosen.prompt_limit,
                vision=caller.options.vision,
            ),
            tool_context=tool_context,
            read_arguments=read_arguments,
            translate=translate,
            advise=advise,
            mode="plan" if caller.mode == "plan" else "interactive",
            depth=caller.depth + 1,
            agent_id=self._session.agent_id,
            caller_id=caller.agent_id or self._session.id,
            delegate=delegate,
        )
        run.tools = self._choose_tools(run, agent)
        run.specs = tuple(tool.spec for tool in run.tools.values())
        if isinstance(caller.purse, Ledger):
            agent_id = self._session.agent_id
            set_budget(run, caller.purse.slice(agent_id), agent_id)
        return run

    def _choose_tools(self, run: Run, agent: AgentDefinition) -> dict[str, Tool]:
        """What its file names of the tools of the session; no agent is without end below it."""
        left_out = NOT_FOR_AGENTS
        if run.depth >= self._crew.settings.max_depth:
            left_out |= {"task"}
        return {
            name: tool
            for name, tool in self._crew.pool(run).items()
            if name not in left_out
            and not is_named(tool, agent.denied_tools)
            and (agent.tools is None or is_named(tool, agent.tools))
        }

    def _build_processors(
        self, agent: AgentDefinition, chosen: Chosen, task: Assignment
    ) -> list[Processor]:
        """In the order of the main agent's: rules hold here as they hold there."""
        main, place, options = self._main, self._crew.place, self._crew.options
        permissions = find_part(main, Permissions).for_agent()
        custom, limits = place.customizations, options.limits
        processors: list[Processor] = []
        processors += [one for one in main.processors if isinstance(one, TurnLimit)]
        before, gate = self._build_hooks(agent)
        processors += before
        if custom is not None:
            processors.append(Skills(custom.find_skill, custom.read_skill))
        processors += [
            PlanMode(permissions.may_change, lambda: agent.read_only),
            permissions,
            Recording(find_part(main, Recorder)),
        ]
        if place.sandbox is not None:
            from trimtab.runtime.sandbox import build_guards

            processors += build_guards(place.sandbox, permissions.policy, self._crew.client.ask)
        processors += [
            *gate,
            Progress(REPEATS if limits.max_repeats is None else limits.max_repeats),
            ContextUsage(ContextMeter(chosen.model), DEFAULT),
            Compaction(
                lambda: TaskKeeper(
                    task.prompt, read_text("compaction"), find_writer(chosen, "compaction")
                ),
                DEFAULT,
                options.compaction,
            ),
            ImageRemoval(),
            Retry(
                limits.retries, limits.retry_delay, limits.max_retry_delay, build_fallbacks(chosen)
            ),
            ResultLimit(count_text, DEFAULT),
        ]
        return processors

    def _build_hooks(self, agent: AgentDefinition) -> tuple[list[Processor], list[Processor]]:
        hooks = self._crew.place.hooks
        if hooks is None:
            return [], []
        from trimtab.hooks.processor import Hooks
        from trimtab.hooks.subagents import describe, stop_hook
        from trimtab.runtime.external_tools import read_modified

        self._about = describe(agent, self._session.agent_id)
        caller = self._hooks = hooks.for_agent(
            self._session,
            {
                "sessionId": self._session.agent_id,
                "agentId": self._session.agent_id,
                "agentType": agent.name,
                "parentAgentId": self._caller.agent_id or self._session.id,
            },
        )
        stop = stop_hook(caller, self._crew.place.folder.events, self._about)
        return [Hooks(caller, read_modified)], [StopGate(stop)]

    async def _start(self, run: Run, agent: AgentDefinition) -> None:
        place, session, model = self._crew.place, self._session, run.options.model
        session.emit(
            SubagentStarted(
                tool_call_id=self._call_id,
                agent_name=agent.name,
                agent_display_name=agent.display_name,
                agent_description=agent.description,
                model=model,
            )
        )
        session.emit(
            SubagentConfigured(model=model, multi_turn=False, reasoning_effort=run.options.effort)
        )
        case = PromptCase.of(run, place.surroundings, place.customizations)
        session.emit(SystemMessage(role="system", content=build_agent_prompt(case, agent)))
        if self._hooks is not None:
            from trimtab.hooks.subagents import tell_start

            await tell_start(self._hooks, run, self._about)

    async def _work(self, run: Run, agent: AgentDefinition) -> ToolResult:
        try:
            await self._start(run, agent)
            stop = await answer(run)
        except asyncio.CancelledError:
            self._complete(run, agent, cancelled=True)
            if not self._ended:
                raise
            return ToolResult(text=f"The user ended the agent {agent.name}.", kind="failure")
        except TrimtabError as error:
            return self._fail(run, agent, error.message)
        except Exception as error:
            self._fail(run, agent, str(error))
            raise
        if stop.reason == "blocked":  # a hook ends everything, whoever it was asked about
            self._caller.stop = stop
        if stop.exit_code:
            return self._fail(run, agent, stop.message)
        self._complete(run, agent)
        return read_answer(run, agent, stop)

    def _complete(self, run: Run, agent: AgentDefinition, *, cancelled: bool | None = None) -> None:
        self._session.emit(
            SubagentCompleted(
                tool_call_id=self._call_id,
                agent_name=agent.name,
                agent_display_name=agent.display_name,
                cancelled=cancelled,
                **self._figures(run),
            )
        )

    def _fail(self, run: Run, agent: AgentDefinition, error: str) -> ToolResult:
        self._session.emit(
            SubagentFailed(
                tool_call_id=self._call_id,
                agent_name=agent.name,
                agent_display_name=agent.display_name,
                error=error,
                **self._figures(run),
            )
        )
        said = last_text(run)
        before = f"\n\nBefore that it said:\n{said}" if said else ""
        return ToolResult(
            text=f"The agent {agent.name} did not finish: {error}{before}", kind="failure"
        )

    def _figures(self, run: Run) -> JsonObject:
        usage = self._crew.place.session.projections.usage.agents.get(self._session.agent_id)
        tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0) if usage else 0
        return {
            "model": run.options.model,
            "total_tool_calls": self._session.tool_calls,
            "total_tokens": tokens,
            "duration_ms": int((time.perf_counter() - self._began) * 1000),
        }


def read_answer(run: Run, agent: AgentDefinition, stop: Stop) -> ToolResult:
    """What the caller is told. A person who rejected a call of the agent rejected the whole."""
    if stop.reason == "rejected":
        text = f"The user rejected a tool call of the agent {agent.name}, which ended it."
        return ToolResult(text=text, kind="rejected")
    return ToolResult(text=last_text(run) or f"The agent {agent.name} ended without an answer.")


def last_text(run: Run) -> str:
    """The last thing the model said."""
    said = (
        message.text
        for message in reversed(run.session.conversation.messages)
        if isinstance(message, AssistantMessage) and message.text
    )
    return next(said, "")


async def end_jobs(run: Run | None) -> None:
    """End what went on beside an agent's work."""
    jobs = set(run.background) if run else set()
    for job in jobs:
        job.cancel()
    if jobs:
        await asyncio.wait(jobs)


def find_part(run: Run, kind: type[Part]) -> Part:
    return next(one for one in run.processors if isinstance(one, kind))
