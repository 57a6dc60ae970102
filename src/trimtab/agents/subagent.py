"""A sub-agent: an agent that does a task for another, as a run of its own in the same log."""

import asyncio
import time
from typing import TYPE_CHECKING

from trimtab.agents.agent import AgentParts, SessionAgent, agent_of
from trimtab.agents.build import build_fallbacks, build_guards, change_way, find_writer
from trimtab.agents.carryover import TaskCarryover
from trimtab.agents.client_tools import read_modified
from trimtab.agents.pool import USER, SubagentPool
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
from trimtab.contracts.ids import new_id
from trimtab.contracts.messages import AssistantMessage
from trimtab.contracts.processor import Processor, Stop
from trimtab.contracts.run import Prompt, Run
from trimtab.contracts.tool import Assignment, Tool, ToolResult
from trimtab.customize.agents import fill_prompt
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
from trimtab.loop.processors.steering import Steering
from trimtab.loop.processors.stop_gate import StopGate
from trimtab.models.choose import Chosen
from trimtab.prompts.assemble import read_text
from trimtab.providers.meter import ContextMeter, count_text
from trimtab.providers.windows import DEFAULT
from trimtab.session.agent import AgentSession
from trimtab.session.inbox import TaskInbox
from trimtab.session.projections.agents import AgentRecord

if TYPE_CHECKING:
    from trimtab.runtimes.responder import RuntimeChoice

MAIN_AGENT_TOOLS = frozenset(("ask_user", "exit_plan_mode", "task_complete", "report_intent"))
"""Tools that address the person or end the person's task; sub-agents do not get them."""


class Subagent:
    """A sub-agent: its run, and the task of the event loop that does its present turn.

    It is built with its first task, or again from the log to go on with what it did before. Each
    turn begins with a started event and ends with a completed or failed event.
    """

    def __init__(self, pool: SubagentPool, caller: Run, call_id: str, task: Assignment) -> None:
        self._pool = pool
        self.caller = caller
        self._call_id = call_id
        self._assignment = task
        self.background = task.background
        self.result: ToolResult | None = None
        self.stopped_by: str | None = None
        self._hooks: HookCaller | None = None
        self._hook_input: JsonObject = {}
        self._start_time = time.perf_counter()
        self._task: asyncio.Task[ToolResult] | None = None
        self._promoted = asyncio.Event()
        self.busy = False
        """True from the start of a turn until its end is recorded and its caller is told."""
        self._greeted = False
        self.id = ""
        self.run: Run
        self.inbox: TaskInbox
        self._session: AgentSession
        self._definition: AgentDefinition
        self._runtime: RuntimeChoice | None = None

    @classmethod
    async def create(
        cls, pool: SubagentPool, caller: Run, call_id: str, task: Assignment
    ) -> "Subagent":
        """Build an agent for a new task. Raises `TrimtabError`, for example at a limit."""
        pool.admit()
        agent = cls(pool, caller, call_id, task)
        prompt = Prompt(text=task.prompt, source="agent", billable=False, id=new_id())
        return await agent._prepare(new_id(), prompt)

    @classmethod
    async def restore(cls, pool: SubagentPool, record: AgentRecord) -> "Subagent":
        """Build an agent that worked before, with its conversation. Raises `TrimtabError`."""
        caller = pool.run_of(record.caller_id)
        same_model = record.model == caller.agent.model.name
        task = Assignment(
            agent_type=record.type,
            prompt=record.task,
            description=record.description,
            name=record.name,
            background=True,
            model=None if same_model else record.model,
        )
        agent = cls(pool, caller, record.call_id, task)
        return await agent._prepare(record.id, None)

    async def _prepare(self, agent_id: str, prompt: Prompt | None) -> "Subagent":
        pool, task = self._pool, self._assignment
        pool.starting += 1
        try:
            self._definition = pool.find(task.agent_type)
            self._runtime = await pool.find_runtime(self._definition)
            chosen = await pool.choose(self.caller, self._definition, task, self._runtime)
            session = pool.setup.session
            self.id = agent_id
            self._session = AgentSession(session, agent_id, self._call_id)
            self.inbox = TaskInbox(session, agent_id, prompt)
            try:
                self.run = self._build(self._definition, chosen, task)
            except BaseException:
                self._session.leave()
                raise
            pool.agents[agent_id] = self
        finally:
            pool.starting -= 1
        return self

    def begin(self) -> None:
        """Start a turn: answer all prompts that wait."""
        self.result, self.stopped_by = None, None
        self._start_time = time.perf_counter()
        self.busy = True
        self._announce()
        self._task = asyncio.get_running_loop().create_task(self._work())
        self._task.add_done_callback(self._on_end)

    def _on_end(self, task: asyncio.Task[ToolResult]) -> None:
        if task.cancelled():
            self._complete(cancelled=True)
            who = "Another agent" if self.stopped_by not in (USER, None) else "The user"
            text = f"{who} cancelled the agent {self._definition.name}."
            self.result = ToolResult(text=text, kind="failure")
        elif (error := task.exception()) is None:
            self.result = task.result()
        elif self.background:
            self._pool.record_bug(error)
        self.busy = False
        self._pool.on_turn_ended(self)

    async def perform(self) -> ToolResult:
        """Work while the caller waits; return the answer, or a remark if it was promoted."""
        self.begin()
        assert self._task is not None
        promotion = asyncio.ensure_future(self._promoted.wait())
        try:
            await asyncio.wait((self._task, promotion), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if not self.background:
                self._task.cancel()
                await asyncio.wait((self._task,))
            raise
        finally:
            promotion.cancel()
        if not self._task.done():
            return ToolResult(text=describe_start(self.id, "continues in the background"))
        if self.stopped_by is not None and self.result is not None:
            return self.result
        return self._task.result()

    def promote(self) -> bool:
        """Let the caller go on without the answer; return False if it does not wait."""
        if self.background or not self.busy:
            return False
        self.background = True
        self._promoted.set()
        return True

    def cancel(self, stopped_by: str) -> bool:
        """Cancel the turn, without cancelling the caller; return False if it does not work."""
        if self._task is None or self._task.done():
            return False
        self.stopped_by = stopped_by
        return self._task.cancel()

    async def ended(self) -> None:
        """Wait until it does not work."""
        if self._task is not None:
            await asyncio.wait((self._task,))

    def leave(self) -> None:
        """Drop the conversation from memory."""
        self._session.leave()

    def _build(self, definition: AgentDefinition, chosen: Chosen, task: Assignment) -> Run:
        """Derive the agent from the main agent, whose rules, recorder and limits it shares."""
        pool, caller, main = self._pool, self.caller.agent, agent_of(self._pool.main)
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
            agents=main.agents,
            id=self._session.agent_id,
            caller_id=caller.id or self._session.id,
            depth=caller.depth + 1,
        )
        run = Run(session=self._session, inbox=self.inbox, agent=agent)
        agent = agent.with_tools(self._choose_tools(run, definition))
        if isinstance(caller.budget, Ledger):
            agent = agent.with_budget(caller.budget.slice(agent.id))
        run.agent = agent if self._runtime is None else self._give_runtime(agent, definition)
        return run

    def _give_runtime(self, agent: SessionAgent, definition: AgentDefinition) -> SessionAgent:
        from trimtab.agents.runtime_agent import RuntimeSupport, give_runtime

        pool = self._pool
        assert self._runtime is not None
        support = RuntimeSupport(
            setup=pool.setup,
            options=lambda: pool.options,
            models=pool.models,
            system=lambda: fill_prompt(definition, pool.setup.checkout.cwd),
            tools=lambda: definition.tools,
            denied_tools=definition.denied_tools,
        )
        return give_runtime(agent, self._runtime, support)

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
            deadline=main.deadline,
            turn_limit=main.turn_limit,
            steering=Steering(),
            hooks=hooks,
            skills=main.skills,
            language=main.language,
            plan_mode=PlanMode(permissions.may_change, lambda: agent.read_only),
            permissions=permissions,
            recorder=main.recorder,
            firewall=firewall,
            sandbox_bypass=bypass,
            stop_gate=stop_gate,
            progress=Progress(limits.max_repeats, change_way=change_way),
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

    def _announce(self) -> None:
        """Record that a turn begins, and what the model is told about its role."""
        setup, session, agent = self._pool.setup, self._session, self._definition
        model, task = self.run.agent.model.name, self._assignment
        session.emit(
            SubagentStarted(
                tool_call_id=self._call_id,
                agent_name=agent.name,
                agent_display_name=agent.display_name,
                agent_description=agent.description,
                model=model,
                parent_id=self.caller.agent.id or None,
                execution_mode="background" if self.background else "sync",
                task_name=task.name or None,
                task_description=task.description or None,
            )
        )
        session.emit(
            SubagentConfigured(
                model=model,
                multi_turn=self.background,
                reasoning_effort=self.run.agent.model.effort,
            )
        )
        case = PromptCase.of(self.run, setup.checkout, setup.customizations)
        if self._runtime is None:
            system = build_agent_prompt(case, agent)
        else:
            system = fill_prompt(agent, setup.checkout.cwd)
        if system != session.conversation.system:
            session.emit(SystemMessage(role="system", content=system))

    async def _work(self) -> ToolResult:
        run, agent = self.run, self._definition
        try:
            if self._hooks is not None and not self._greeted:
                self._greeted = True
                transcript = self._pool.setup.folder.events
                await subagent_start_hook(self._hooks, run, transcript, self._hook_input)
            stop = await answer(run)
        except TrimtabError as error:
            return self._fail(error.message)
        except Exception as error:
            self._fail(str(error))
            raise
        finally:
            await cancel_tasks(run)
        if stop.reason == "blocked":  # a hook that ends a sub-agent's run ends the caller's too
            self.caller.stop = stop
        if stop.exit_code:
            return self._fail(stop.message)
        self._complete()
        return read_answer(run, agent, stop)

    def _complete(self, *, cancelled: bool | None = None) -> None:
        agent = self._definition
        self._session.emit(
            SubagentCompleted(
                tool_call_id=self._call_id,
                agent_name=agent.name,
                agent_display_name=agent.display_name,
                cancelled=cancelled,
                **self._figures(),
            )
        )

    def _fail(self, error: str) -> ToolResult:
        agent = self._definition
        self._session.emit(
            SubagentFailed(
                tool_call_id=self._call_id,
                agent_name=agent.name,
                agent_display_name=agent.display_name,
                error=error,
                **self._figures(),
            )
        )
        message = last_text(self.run)
        before = f"\n\nIts last message was:\n{message}" if message else ""
        return ToolResult(
            text=f"The agent {agent.name} did not finish: {error}{before}", kind="failure"
        )

    def _figures(self) -> JsonObject:
        usage = self._pool.setup.session.projections.usage.agents.get(self._session.agent_id)
        tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0) if usage else 0
        return {
            "model": self.run.agent.model.name,
            "total_tool_calls": self._session.tool_calls,
            "total_tokens": tokens,
            "duration_ms": int((time.perf_counter() - self._start_time) * 1000),
        }


def describe_start(agent_id: str, state: str) -> str:
    """Return the result of a call whose agent works in the background."""
    return (
        f"The agent with the agent_id {agent_id} {state}. You are told when it ends; until then go "
        "on with other work. read_agent shows what it does, write_agent sends it a message, "
        "stop_agent ends it."
    )


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
