"""Builds the main agent of a session, and each of its processors."""

import os
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from trimtab.agents.agent import AgentParts, SessionAgent
from trimtab.agents.call_context import ContextFactory
from trimtab.agents.fence import SessionFence
from trimtab.agents.message_telemetry import TelemetryMeter
from trimtab.agents.setup import SessionSetup
from trimtab.agents.toolset import choose_tools
from trimtab.attachments.attached_images import AttachedImages
from trimtab.checkout.checkout import temp_folder
from trimtab.config.trust import trust_key
from trimtab.contracts.agent import CallParser, ModelSettings
from trimtab.contracts.options import Client, SessionOptions
from trimtab.contracts.permission import Policy, Rule
from trimtab.contracts.processor import Processor, Stop
from trimtab.contracts.run import Run
from trimtab.loop.processors.autopilot import Autopilot
from trimtab.loop.processors.compaction import Compaction
from trimtab.loop.processors.context_usage import ContextUsage
from trimtab.loop.processors.discovered import DiscoveredInstructions
from trimtab.loop.processors.images import ImageRemoval
from trimtab.loop.processors.plan_mode import PlanMode
from trimtab.loop.processors.plan_watcher import PlanWatcher
from trimtab.loop.processors.progress import Progress
from trimtab.loop.processors.pull_requests import PullRequests
from trimtab.loop.processors.result_limit import ResultLimit
from trimtab.loop.processors.retry import Fallback, Fallbacks, Retry
from trimtab.loop.processors.skills import Skills
from trimtab.loop.processors.slash import SlashCommands
from trimtab.loop.processors.steering import Steering
from trimtab.loop.processors.stop_gate import StopGate
from trimtab.models.choose import LOCAL, Chosen
from trimtab.models.limits import build_ledger
from trimtab.permissions.processor import Permissions
from trimtab.policy.git_programs import find_git_programs
from trimtab.policy.rule_files import load_exclusions
from trimtab.policy.saved_approvals import SavedApprovals
from trimtab.prompts.assemble import read_text
from trimtab.prompts.transform import UserContext
from trimtab.providers.meter import ContextMeter, count_text
from trimtab.providers.windows import DEFAULT
from trimtab.tools.arguments import read_arguments
from trimtab.tools.catalog import advise, translate
from trimtab.undo.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trimtab.checkout.worktree_commits import WorktreeCommits
    from trimtab.contracts.tool import AgentsPort
    from trimtab.loop.compact import Carryover
    from trimtab.loop.processors.deadline import Deadline
    from trimtab.loop.processors.jit import JitInstructions
    from trimtab.loop.processors.stop_rules import StopRules
    from trimtab.loop.processors.title import Titles
    from trimtab.loop.processors.turn_limit import TurnLimit
    from trimtab.loop.side_calls import Writer
    from trimtab.lsp.processor import LanguageFeedback
    from trimtab.models.routing import ModelRouting, ModelSwitch
    from trimtab.permissions.firewall import Firewall
    from trimtab.permissions.sandbox_bypass import SandboxBypass
    from trimtab.policy.remote_exclusions import RemoteExclusions
    from trimtab.prompts.mentioned import MentionedFiles

CALL_PARSER = CallParser(read_arguments=read_arguments, translate=translate, advise=advise)


def build_agent(
    setup: SessionSetup, chosen: Chosen, options: SessionOptions, ports: "AgentPorts"
) -> SessionAgent:
    """Build the main agent of a session."""
    tools = choose_tools(options, ports.client, setup.tool_conditions(options.mode, chosen.model))
    parts = build_parts(setup, chosen, options, ports)
    agent = SessionAgent(
        model=ModelSettings(
            provider=chosen.provider,
            name=chosen.model,
            stream=options.stream,
            effort=options.effort,
            reasoning_summary=options.reasoning_summary,
            citations=options.citations,
            prompt_limit=chosen.prompt_limit,
            vision=options.vision,
            price=chosen.price,
        ),
        tools=tools,
        specs=tuple(tool.spec for tool in tools.values()),
        pipeline=parts.in_order(),
        parts=parts,
        parser=CALL_PARSER,
        tool_context=ContextFactory(setup, options.large_output),
        mode=options.mode,
        agents=ports.agents,
        before_idle=build_before_idle(setup, parts),
        has_background_work=ports.has_background_work,
    )
    ledger = build_ledger(setup.session, options.limits, ports.client.ask_limit)
    agent = agent.with_budget(ledger)
    return agent if ports.give_runtime is None else ports.give_runtime(agent)


class AgentPorts(msgspec.Struct, frozen=True, kw_only=True):
    """The functions by which the processors of a main agent call back into their session."""

    client: Client
    answer_command: "Callable[[str], Awaitable[str | None]]"
    agents: "Callable[[Run, str], AgentsPort]"
    model_switch: "Callable[[], ModelSwitch]"
    has_background_work: "Callable[[], bool]"
    expand_command: "Callable[[str], Awaitable[str | None]] | None" = None
    give_runtime: "Callable[[SessionAgent], SessionAgent] | None" = None
    """Gives the agent the runtime that answers its prompts; None leaves it our own loop."""


def build_parts(
    setup: SessionSetup, chosen: Chosen, options: SessionOptions, ports: AgentPorts
) -> AgentParts:
    """Build the processors of a main agent; `AgentParts` defines their order."""
    limits, client = options.limits, ports.client
    fence = SessionFence(setup, options.sandbox_settings)
    fence.look_ahead()
    permissions = build_permissions(setup, options, client, fence)
    firewall, bypass = build_guards(setup, permissions, client)
    custom = setup.customizations
    deadline = build_deadline(limits.deadline)
    rules = build_stop_rules(setup)
    recorder = build_recorder(setup, permissions)
    return AgentParts(
        deadline=deadline,
        checkpoints=build_checkpoints(setup, options, recorder),
        turn_limit=build_turn_limit(limits.max_turns),
        steering=Steering(),
        routing=build_model_routing(setup, ports.model_switch),
        slash_commands=SlashCommands(
            ports.answer_command, client.offer_command, ports.expand_command
        ),
        remote_exclusions=build_remote_exclusions(setup, chosen, permissions),
        hooks=build_hooks(setup),
        skills=Skills(custom.find_skill, custom.read_skill, custom.skill_tools) if custom else None,
        discovered_instructions=build_discovered(setup, chosen),
        attached_images=AttachedImages(setup.folder.images, permissions),
        user_context=UserContext(),
        start_hooks=build_start_hooks(setup),
        language=build_language(setup, permissions),
        plan_mode=PlanMode(permissions.may_change, setup.has_read_only_agent),
        permissions=permissions,
        recorder=recorder,
        firewall=firewall,
        sandbox_bypass=bypass,
        stop_gate=build_stop_gate(setup),
        stop_rules=rules,
        pull_requests=PullRequests(),
        plan_watcher=PlanWatcher(setup.folder.plan, setup.todos),
        progress=Progress(limits.max_repeats, attended=client.attended, change_way=change_way),
        autopilot=Autopilot(read_text("nudge"), limits.continues),
        context_usage=ContextUsage(ContextMeter(chosen.model), DEFAULT),
        jit=build_jit(setup, deadline, rules),
        compaction=Compaction(build_carryover(setup, chosen, options), DEFAULT, options.compaction),
        image_removal=ImageRemoval(),
        titles=build_titles(setup, chosen),
        retry=Retry(
            limits.retry_policy,
            build_fallbacks(chosen),
            last_resort=client.ask_mode_switch,
        ),
        result_limit=ResultLimit(count_text, DEFAULT),
        mentioned_files=build_mentioned_files(chosen),
    )


def build_recorder(setup: SessionSetup, permissions: Permissions) -> Recorder:
    folders = [folder.path for folder in setup.checkout.folders]
    recorder = Recorder(
        setup.session, setup.workspace, setup.folder, permissions.may_change, folders
    )
    permissions.rely_on_undo(recorder.can_restore, recorder.track)
    return recorder


def build_language(setup: SessionSetup, permissions: Permissions) -> "LanguageFeedback | None":
    if setup.languages is None:
        return None
    from trimtab.lsp.processor import LanguageFeedback

    return LanguageFeedback(setup.languages, permissions.find_hidden)


def build_model_routing(
    setup: SessionSetup, model_switch: "Callable[[], ModelSwitch]"
) -> "ModelRouting | None":
    custom = setup.customizations
    if custom is None or not custom.has_settings:
        return None
    from trimtab.models.routing import build_routing

    return build_routing(custom.settings, model_switch)


def build_turn_limit(max_turns: int | None, taken: int = 0) -> "TurnLimit | None":
    if max_turns is None:
        return None
    from trimtab.loop.processors.turn_limit import TurnLimit

    return TurnLimit(max_turns, taken)


async def change_way(run: Run) -> str:
    """Give a run that repeats itself another effort or model, and a fresh context."""
    from trimtab.agents.unattended import change_way

    return await change_way(run)


def build_deadline(seconds: float | None) -> "Deadline | None":
    if seconds is None:
        return None
    from trimtab.loop.processors.deadline import Deadline
    from trimtab.loop.time_limit import TimeLimit

    return Deadline(TimeLimit(seconds))


def build_stop_rules(setup: SessionSetup) -> "StopRules | None":
    custom = setup.customizations
    if custom is None or not custom.has_settings or "stopGate" not in custom.settings.values:
        return None
    from trimtab.agents import unattended

    return unattended.build_stop_rules(setup)


def build_jit(
    setup: SessionSetup, deadline: "Deadline | None", rules: "StopRules | None"
) -> "JitInstructions | None":
    custom = setup.customizations
    if custom is None or not custom.has_settings or "jitInstructions" not in custom.settings.values:
        return None
    from trimtab.agents import unattended

    return unattended.build_jit(setup, deadline.limit if deadline else None, rules)


def build_checkpoints(
    setup: SessionSetup, options: SessionOptions, recorder: Recorder
) -> "WorktreeCommits | None":
    worktree = setup.checkout.worktree
    if worktree is None:
        return None
    from trimtab.checkout.worktree_commits import WorktreeCommits

    commits = WorktreeCommits(setup.session, worktree, commits=options.auto_commit is not False)
    commits.on_commit = recorder.take_over_commit
    return commits


def build_remote_exclusions(
    setup: SessionSetup, chosen: Chosen, permissions: Permissions
) -> "RemoteExclusions | None":
    """Only GitHub's service lists the content that organizations exclude."""
    if chosen.provider.name != "copilot":
        return None
    from trimtab.policy.remote_exclusions import build_remote

    folders = [folder.path for folder in setup.checkout.folders]
    return build_remote(folders, chosen.provider, permissions)


def build_discovered(setup: SessionSetup, chosen: Chosen) -> DiscoveredInstructions | None:
    custom = setup.customizations
    if custom is None:
        return None
    custom.window = chosen.prompt_limit or DEFAULT
    return DiscoveredInstructions(custom.touch, custom.render_touched)


def build_guards(
    setup: SessionSetup, permissions: Permissions, client: Client
) -> "tuple[Firewall | None, SandboxBypass | None]":
    if setup.sandbox is None:
        return None, None
    from trimtab.agents.sandbox import build_guards

    return build_guards(setup, permissions, client.ask)


def build_mentioned_files(chosen: Chosen) -> "MentionedFiles | None":
    """Only the embedded model gets the files a prompt mentions; it is too small to read them."""
    if chosen.provider.name != LOCAL:
        return None
    from trimtab.prompts.mentioned import MentionedFiles

    return MentionedFiles()


def build_hooks(setup: SessionSetup) -> Processor | None:
    if setup.hooks is None:
        return None
    from trimtab.agents.client_tools import read_modified
    from trimtab.hooks.processor import Hooks

    return Hooks(setup.hooks, read_modified)


def build_start_hooks(setup: SessionSetup) -> Processor | None:
    if setup.hooks is None:
        return None
    from trimtab.hooks.processor import StartHooks

    return StartHooks(setup.hooks, source="resume" if setup.resumed else "new")


def build_stop_gate(setup: SessionSetup) -> StopGate | None:
    if setup.hooks is None:
        return None
    from trimtab.hooks.processor import stop_hook

    return StopGate(stop_hook(setup.hooks, setup.folder.events))


def build_before_idle(
    setup: SessionSetup, parts: AgentParts
) -> "Callable[[Run, Stop], Awaitable[None]]":
    """Build the function that ends a run: end hooks, the commit of a worktree, telemetry."""
    hooks, checkpoints = setup.hooks, parts.checkpoints
    custom = setup.customizations
    env = custom.telemetry_env if custom is not None else setup.env
    telemetry = TelemetryMeter(setup.session.projections, env)

    async def before_idle(run: Run, stop: Stop) -> None:
        if hooks is not None:
            from trimtab.hooks.processor import end_hook

            if stop.reason != "aborted":
                await hooks.settle()
            await end_hook(hooks, run, stop)
        if checkpoints is not None:
            await checkpoints.end(succeeded=not stop.exit_code)
        telemetry.emit(run, stop)

    return before_idle


def find_writer(chosen: Chosen, role: str) -> "Callable[[], Awaitable[Writer | None]]":
    """Return a function that finds the model configured for a role, when it is called."""

    async def find() -> "Writer | None":
        from trimtab.loop.side_calls import Writer

        model = await chosen.roles.get(role) if chosen.roles else None
        if model is None:
            return None
        return Writer(provider=model.provider, model=model.model, price=model.price)

    return find


def build_carryover(
    setup: SessionSetup, chosen: Chosen, options: SessionOptions
) -> "Callable[[], Carryover]":
    """Return a function that builds the carryover when the first compaction needs it."""

    def build() -> "Carryover":
        from trimtab.agents.carryover import SessionCarryover

        changes = setup.session.projections.changes
        titled = options.compaction is None or options.compaction.title
        instruction = read_text("compaction")
        if not titled:
            from trimtab.agents.carryover import leave_out_title

            instruction = leave_out_title(instruction)
        return SessionCarryover(
            setup.folder,
            setup.todos,
            changes,
            instruction,
            find_writer(chosen, "compaction"),
        )

    return build


def build_titles(setup: SessionSetup, chosen: Chosen) -> "Titles | None":
    """A title costs a model call, so it is written only if a model for titles is configured."""
    if setup.resumed or chosen.roles is None or not chosen.roles.has("title"):
        return None
    from trimtab.loop.processors.title import Titles

    def save(title: str) -> None:
        setup.folder.update_metadata(summary=title)

    return Titles(read_text("title"), find_writer(chosen, "title"), save)


def build_fallbacks(chosen: Chosen) -> Fallbacks:
    return Fallbacks(
        [
            Fallback(
                provider=fallback.provider,
                model=fallback.model,
                price=fallback.price,
                prompt_limit=fallback.prompt_limit,
            )
            for fallback in chosen.fallbacks
        ]
    )


def build_permissions(
    setup: SessionSetup,
    options: SessionOptions,
    client: Client,
    fence: SessionFence | None = None,
) -> Permissions:
    """Build the processor that decides whether a tool call may run."""
    policy = msgspec.structs.replace(build_policy(setup, options), always_ask=client.always_ask)
    if setup.sandbox is not None:
        from trimtab.agents.sandbox import confine

        policy = confine(policy, setup.sandbox)
    hook = None
    if setup.hooks is not None:
        from trimtab.hooks.processor import permission_hook

        hook = permission_hook(setup.hooks)
    if setup.home is None:
        return Permissions(policy, client.ask, hook=hook, fence=fence)
    project = options.cwd if setup.checkout.trusted else ""
    saved = SavedApprovals(setup.home.permissions, trust_key(options.cwd), project)
    approved = saved.load()
    opened = msgspec.structs.replace(
        policy,
        allow=(*policy.allow, *approved.rules),
        roots=(*policy.roots, *approved.directories),
    )
    permissions = Permissions(opened, client.ask, saved, hook, fence)
    permissions.follow_exclusions(partial(load_exclusions, setup.home), known=policy.roots)
    return permissions


def read_rules(texts: tuple[str, ...]) -> tuple[Rule, ...]:
    if not texts:
        return ()
    from trimtab.permissions.rules import parse_rules

    return parse_rules(texts)


def freeze_rules(rules: tuple[Rule, ...], homes: tuple[str, ...]) -> tuple[Rule, ...]:
    """Return rules that allow, with the links in the paths they name resolved."""
    if not rules:
        return ()
    from trimtab.permissions.read_folders import freeze

    return freeze(rules, homes)


def find_skill_folders(setup: SessionSetup) -> tuple[str, ...]:
    """Return the folders of the model's skills, which also contain the files skills refer to."""
    skills = (skill for skill in setup.skills.values() if not skill.is_command)
    return tuple(dict.fromkeys(os.path.dirname(skill.path) for skill in skills))


def find_undone(setup: SessionSetup, home: str) -> tuple[str, ...]:
    """Return the folders of the workspace that the recorder covers: not a home, nor everything."""
    places = (os.path.realpath(folder.path) for folder in setup.checkout.folders)
    return tuple(place for place in places if place not in (os.path.realpath(home), os.sep))


def build_policy(setup: SessionSetup, options: SessionOptions) -> Policy:
    """Build the permission policy from the options, the rule files and the session's folders."""
    permissions = options.permissions
    roots = [options.cwd, *permissions.add_dirs, setup.folder.path]
    temp = temp_folder(setup.workspace.child_env) if permissions.temp_dir else ""
    if temp:
        roots.append(temp)
    homes = (setup.home.config, setup.home.state) if setup.home else ()
    person = setup.workspace.resolve("~")
    return Policy(
        cwd=options.cwd,
        home=person,
        undone=find_undone(setup, person),
        temp=os.path.realpath(temp) if temp else "",
        homes=tuple(dict.fromkeys(os.path.realpath(home) for home in homes)),
        session_folder=setup.folder.path,
        roots=tuple(os.path.realpath(root) for root in roots),
        readable=find_skill_folders(setup),
        allow_all_tools=permissions.allow_all_tools,
        allow_all_paths=permissions.allow_all_paths,
        allow_all_urls=permissions.allow_all_urls,
        allow_destructive=permissions.allow_destructive,
        assess=options.assess,
        git_programs=find_git_programs(options.cwd),
        allow=freeze_rules((*read_rules(permissions.allow), *setup.rules.allow), homes),
        ask=setup.rules.ask,
        deny=(*read_rules(permissions.deny), *setup.rules.deny),
    )
