"""The agent of a session: its named processors, and the order in which they step into the loop."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.contracts.agent import Agent
from trimtab.contracts.mcp import is_deferred
from trimtab.contracts.processor import Processor
from trimtab.contracts.run import Run
from trimtab.contracts.tool import Tool

if TYPE_CHECKING:
    from trimtab.attachments.attached_images import AttachedImages
    from trimtab.checkout.worktree_commits import WorktreeCommits
    from trimtab.loop.ledger import Ledger
    from trimtab.loop.processors.autopilot import Autopilot
    from trimtab.loop.processors.budget import Budget
    from trimtab.loop.processors.compaction import Compaction
    from trimtab.loop.processors.context_usage import ContextUsage
    from trimtab.loop.processors.deadline import Deadline
    from trimtab.loop.processors.discovered import DiscoveredInstructions
    from trimtab.loop.processors.images import ImageRemoval
    from trimtab.loop.processors.jit import JitInstructions
    from trimtab.loop.processors.plan_mode import PlanMode
    from trimtab.loop.processors.plan_watcher import PlanWatcher
    from trimtab.loop.processors.progress import Progress
    from trimtab.loop.processors.pull_requests import PullRequests
    from trimtab.loop.processors.result_limit import ResultLimit
    from trimtab.loop.processors.retry import Retry
    from trimtab.loop.processors.skills import Skills
    from trimtab.loop.processors.slash import SlashCommands
    from trimtab.loop.processors.steering import Steering
    from trimtab.loop.processors.stop_gate import StopGate
    from trimtab.loop.processors.stop_rules import StopRules
    from trimtab.loop.processors.terminal_tools import TerminalTools
    from trimtab.loop.processors.title import Titles
    from trimtab.loop.processors.turn_limit import TurnLimit
    from trimtab.lsp.processor import LanguageFeedback
    from trimtab.models.routing import ModelRouting
    from trimtab.permissions.firewall import Firewall
    from trimtab.permissions.processor import Permissions
    from trimtab.permissions.sandbox_bypass import SandboxBypass
    from trimtab.policy.remote_exclusions import RemoteExclusions
    from trimtab.prompts.mentioned import MentionedFiles
    from trimtab.prompts.transform import UserContext
    from trimtab.undo.recorder import Recorder


class AgentParts(msgspec.Struct, frozen=True, kw_only=True):
    """The processors of an agent. The order of the fields is the order of the pipeline.

    Limits come first. Hooks see a prompt before its context is added, and a tool call before
    permissions do. Permissions see a call last, so that the call they decide on is the one that
    runs. The budget comes after compaction: it reserves the cost of the request that is sent.
    """

    checkpoints: "WorktreeCommits | None" = None
    deadline: "Deadline | None" = None
    turn_limit: "TurnLimit | None" = None
    steering: "Steering | None" = None
    routing: "ModelRouting | None" = None
    slash_commands: "SlashCommands | None" = None
    remote_exclusions: "RemoteExclusions | None" = None
    hooks: Processor | None = None
    skills: "Skills | None" = None
    discovered_instructions: "DiscoveredInstructions | None" = None
    attached_images: "AttachedImages | None" = None
    user_context: "UserContext | None" = None
    start_hooks: Processor | None = None
    language: "LanguageFeedback | None" = None
    plan_mode: "PlanMode"
    permissions: "Permissions"
    recorder: "Recorder"
    firewall: "Firewall | None" = None
    sandbox_bypass: "SandboxBypass | None" = None
    stop_gate: "StopGate | None" = None
    stop_rules: "StopRules | None" = None
    pull_requests: "PullRequests | None" = None
    plan_watcher: "PlanWatcher | None" = None
    progress: "Progress"
    autopilot: "Autopilot | None" = None
    context_usage: "ContextUsage"
    jit: "JitInstructions | None" = None
    compaction: "Compaction"
    budget: "Budget | None" = None
    image_removal: "ImageRemoval"
    titles: "Titles | None" = None
    retry: "Retry"
    result_limit: "ResultLimit"
    terminal_tools: "TerminalTools | None" = None
    mentioned_files: "MentionedFiles | None" = None

    def in_order(self) -> tuple[Processor, ...]:
        """Return the pipeline: all parts that are set, in order."""
        parts = (getattr(self, name) for name in self.__struct_fields__)
        return tuple(part for part in parts if part is not None)


class SessionAgent(Agent, frozen=True, kw_only=True):
    """An agent composed of named parts. Each `with_` method returns a changed copy."""

    parts: AgentParts

    def with_parts(self, **changes: Any) -> "SessionAgent":
        parts = msgspec.structs.replace(self.parts, **changes)
        return msgspec.structs.replace(self, parts=parts, pipeline=parts.in_order())

    def with_model(self, **changes: Any) -> "SessionAgent":
        return msgspec.structs.replace(self, model=msgspec.structs.replace(self.model, **changes))

    def with_tools(self, tools: Mapping[str, Tool]) -> "SessionAgent":
        specs = tuple(tool.spec for tool in tools.values() if not is_deferred(tool))
        return msgspec.structs.replace(self, tools=tools, specs=specs)

    def with_budget(self, ledger: "Ledger | None") -> "SessionAgent":
        """Return an agent limited by `ledger`, or without a limit if it is None."""
        if ledger is None:
            return msgspec.structs.replace(self.with_parts(budget=None), budget=None)
        from trimtab.loop.processors.budget import Budget

        limited = self.with_parts(budget=Budget(ledger, self.id or None))
        return msgspec.structs.replace(limited, budget=ledger)


def agent_of(run: Run) -> SessionAgent:
    """Return the agent of a session's run, with its parts."""
    assert isinstance(run.agent, SessionAgent)
    return run.agent
