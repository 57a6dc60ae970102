"""A sub-agent: an agent that does a task for another, as a run of its own in the same log."""

import asyncio
import time
from collections import deque

from trimtab.agents.agent import AgentParts, SessionAgent, agent_of
from trimtab.agents.build import build_fallbacks, build_guards, find_writer
from trimtab.agents.carryover import TaskCarryover
from trimtab.agents.client_tools import read_modified
from trimtab.agents.pool import SubagentPool
from trimtab.agents.system_prompt import PromptCase, build_agent_prompt
from trimtab.agents.toolset import is_named
from trimtab.contracts.agent import ModelSettings
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
from trimtab.contracts.processor import Processor, Stop
from trimtab.contracts.run import Prompt, Run
from trimtab.contracts.tool import Assignment, Tool, ToolResult
from trimtab.hooks.caller import HookCaller
from trimtab.hooks.processor import (
    Hooks,
    describe_subagent,
    subagent_start_hook,
    subagent_stop_hook,
)
from trimtab.loop.drain import answer
from trimtab.loop.ledger import Ledger
from trimtab.loop.processors.compaction import Compaction
from trimtab.loop.processors.context_usage import ContextUsage
from trimtab.loop.processors.images import ImageRemoval
from trimtab.loop.processors.plan_mode import PlanMode
from trimtab.loop.processors.progress import Progress
from trimtab.loop.processors.result_limit import ResultLimit
from trimtab.loop.processors.retry import Retry
from trimtab.loop.processors.stop_gate import StopGate
from trimtab.models.choose import Chosen
from trimtab.prompts.assemble import read_text
from trimtab.providers.meter import ContextMeter, count_text
from trimtab.providers.windows import DEFAULT
from trimtab.session.agent import AgentSession

MAIN_AGENT_TOOLS = frozenset(("ask_user", "exit_plan_mode", "task_complete", "report_intent"))
"""Tools that address the person or end the person's task; sub-agents do not get them."""


class TaskInbox:
    """The prompts of a sub-agent: its task, and the reasons of hooks that keep it working."""

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

    def consume(self, prompt: Prompt) -> None:
        """Do nothing: `take` has already removed the prompt."""


class Subagent:
    """A sub-agent that does one task, from its started event to its completed or failed event."""

    def __init__(self, pool: SubagentPool, main: Run, caller: Run, call_id: str) -> None:
        self._pool = pool
        self._main = main
        self.caller = caller
        self._call_id = call_id
        self._session = AgentSession(pool.setup.session, new_id(), call_id)
        self._hooks: HookCaller | None = None
        self._hook_input: JsonObject = {}
        self._start_time = time.perf_counter()
        self._task: asyncio.Task[ToolResult] | None = None
        self._cancelled = False
        self.description: JsonObject = {}
        self.run: Run | None = None

    async def perform(self, task: Assignment) -> ToolResult:
        """Do the task and return the agent's last message as the result."""
        self._pool.agents[self._session.agent_id] = self
        try:
            try:
                agent = self._pool.find(task.agent_type, self._main)
                chosen = await self._pool.choose(self.caller, agent, task)
                run = self._build(agent, chosen, task)
            except TrimtabError as error:
                return ToolResult(text=f"No agent was started: {error.message}", kind="failure")
            self.run = run
            self.description = self._describe(run, agent, task)
            self._task = asyncio.get_running_loop().create_task(self._work(run, agent))
            return await self._task
        finally:
            del self._pool.agents[self._session.agent_id]
            await cancel_tasks(self.run)
            self._session.leave()

    def cancel(self) -> bool:
        """Cancel the agent, without cancelling its caller; return False if it is not running."""
        if self._task is None or self._task.done():
            return False
        self._cancelled = True
        return self._task.cancel()

    def _describe(self, run: Run, agent: AgentDefinition, task: Assignment) -> JsonObject:
        return {
            "type": "agent",
            "id": self._session.agent_id,
            "toolCallId": self._call_id,
            "agentType": agent.name,
            "description": task.description,
            "prompt": task.prompt,
            "model": run.agent.model.name,
            "executionMode": "sync",
            "status": "running",
            "startedAt": timestamp(),
        }

    def _build(self, definition: AgentDefinition, chosen: Chosen, task: Assignment) -> Run:
        """Derive the agent from the main agent, whose rules, recorder and limits it shares."""
        pool, caller, main = self._pool, self.caller.agent, agent_of(self._main)
        effort = task.effort or pool.setting(definition, "effortLevel") or definition.effort
        model = ModelSettings(
            provider=chosen.provider,
            name=chosen.model,
            stream=pool.options.stream,
            effort=effort or caller.model.effort,
            price=chosen.price,
            prompt_limit=chosen.prompt_limit,
            vision=caller.model.vision,
        )
        parts = self._derive_parts(main.parts, definition, chosen, task)
        agent = SessionAgent(
            model=model,
            tools={},
            specs=(),
            pipeline=parts.in_order(),
            parts=parts,
            parser=main.parser,
            tool_context=main.tool_context,
            mode="plan" if caller.mode == "plan" else "interactive",
            delegate=main.delegate,
            id=self._session.agent_id,
            caller_id=caller.id or self._session.id,
            depth=caller.depth + 1,
        )
        prompt = Prompt(text=task.prompt, source="agent", billable=False, id=new_id())
        run = Run(session=self._session, inbox=TaskInbox(prompt), agent=agent)
        agent = agent.with_tools(self._choose_tools(run, definition))
        if isinstance(caller.budget, Ledger):
            agent = agent.with_budget(caller.budget.slice(agent.id))
        run.agent = agent
        return run

    def _choose_tools(self, run: Run, agent: AgentDefinition) -> dict[str, Tool]:
        """Choose the tools the agent's file names. `task` is removed at the maximum depth."""
        excluded = MAIN_AGENT_TOOLS
        if run.agent.depth >= self._pool.settings.max_depth:
            excluded |= {"task"}
        return {
            name: tool
            for name, tool in self._pool.find_tools(run).items()
            if name not in excluded
            and not is_named(tool, agent.denied_tools)
            and (agent.tools is None or is_named(tool, agent.tools))
        }

    def _derive_parts(
        self, main: AgentParts, agent: AgentDefinition, chosen: Chosen, task: Assignment
    ) -> AgentParts:
        options = self._pool.options
        limits = options.limits
        permissions = main.permissions.for_agent()
        firewall, bypass = build_guards(self._pool.setup, permissions, self._pool.client)
        hooks, stop_gate = self._build_hooks(agent)

        def build_carryover() -> TaskCarryover:
            writer = find_writer(chosen, "compaction")
            return TaskCarryover(task.prompt, read_text("compaction"), writer)

        return AgentParts(
            turn_limit=main.turn_limit,
            hooks=hooks,
            skills=main.skills,
            plan_mode=PlanMode(permissions.may_change, lambda: agent.read_only),
            permissions=permissions,
            recorder=main.recorder,
            firewall=firewall,
            sandbox_bypass=bypass,
            stop_gate=stop_gate,
            progress=Progress(limits.max_repeats),
            context_usage=ContextUsage(ContextMeter(chosen.model), DEFAULT),
            compaction=Compaction(
                build_carryover,
                DEFAULT,
                options.compaction,
                lambda: main.compaction.writers,
            ),
            image_removal=ImageRemoval(),
            retry=Retry(limits.retry_policy, build_fallbacks(chosen)),
            result_limit=ResultLimit(count_text, DEFAULT),
        )

    def _build_hooks(self, agent: AgentDefinition) -> tuple[Processor | None, StopGate | None]:
        hooks = self._pool.setup.hooks
        if hooks is None:
            return None, None
        self._hook_input = describe_subagent(agent, self._session.agent_id)
        caller = self._hooks = hooks.for_agent(
            self._session,
            {
                "sessionId": self._session.agent_id,
                "agentId": self._session.agent_id,
                "agentType": agent.name,
                "parentAgentId": self.caller.agent.id or self._session.id,
            },
        )
        stop = subagent_stop_hook(caller, self._pool.setup.folder.events, self._hook_input)
        return Hooks(caller, read_modified), StopGate(stop)

    async def _start(self, run: Run, agent: AgentDefinition) -> None:
        setup, session, model = self._pool.setup, self._session, run.agent.model.name
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
            SubagentConfigured(
                model=model, multi_turn=False, reasoning_effort=run.agent.model.effort
            )
        )
        case = PromptCase.of(run, setup.checkout, setup.customizations)
        session.emit(SystemMessage(role="system", content=build_agent_prompt(case, agent)))
        if self._hooks is not None:
            await subagent_start_hook(self._hooks, run, self._hook_input)

    async def _work(self, run: Run, agent: AgentDefinition) -> ToolResult:
        try:
            await self._start(run, agent)
            stop = await answer(run)
        except asyncio.CancelledError:
            self._complete(run, agent, cancelled=True)
            if not self._cancelled:
                raise
            return ToolResult(text=f"The user cancelled the agent {agent.name}.", kind="failure")
        except TrimtabError as error:
            return self._fail(run, agent, error.message)
        except Exception as error:
            self._fail(run, agent, str(error))
            raise
        if stop.reason == "blocked":  # a hook that ends a sub-agent's run ends the caller's too
            self.caller.stop = stop
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
        message = last_text(run)
        before = f"\n\nIts last message was:\n{message}" if message else ""
        return ToolResult(
            text=f"The agent {agent.name} did not finish: {error}{before}", kind="failure"
        )

    def _figures(self, run: Run) -> JsonObject:
        usage = self._pool.setup.session.projections.usage.agents.get(self._session.agent_id)
        tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0) if usage else 0
        return {
            "model": run.agent.model.name,
            "total_tool_calls": self._session.tool_calls,
            "total_tokens": tokens,
            "duration_ms": int((time.perf_counter() - self._start_time) * 1000),
        }


def read_answer(run: Run, agent: AgentDefinition, stop: Stop) -> ToolResult:
    """Return the caller's result. If the person rejected a call, the whole task is rejected."""
    if stop.reason == "rejected":
        text = f"The user rejected a tool call of the agent {agent.name}, which stopped it."
        return ToolResult(text=text, kind="rejected")
    return ToolResult(text=last_text(run) or f"The agent {agent.name} ended without an answer.")


def last_text(run: Run) -> str:
    """Return the text of the model's last message; empty if there is none."""
    texts = (
        message.text
        for message in reversed(run.session.conversation.messages)
        if isinstance(message, AssistantMessage) and message.text
    )
    return next(texts, "")


async def cancel_tasks(run: Run | None) -> None:
    """Cancel the background tasks of a run, and wait until they have ended."""
    tasks = set(run.tasks) if run else set()
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
