"""Puts the parts of an agent together. The order of processors is policy, and it stands here."""

import os
from typing import TYPE_CHECKING

import msgspec

from trimtab.config.trust import trust_key
from trimtab.contracts.permission import Policy, Rule
from trimtab.contracts.processor import Processor
from trimtab.contracts.run import Run, RunOptions
from trimtab.loop.fallback import Fallback, Fallbacks
from trimtab.loop.processors.autopilot import Autopilot
from trimtab.loop.processors.compaction import Compaction
from trimtab.loop.processors.context_usage import ContextUsage
from trimtab.loop.processors.discovered import DiscoveredInstructions
from trimtab.loop.processors.images import ImageRemoval
from trimtab.loop.processors.plan_mode import PlanMode
from trimtab.loop.processors.progress import Progress
from trimtab.loop.processors.result_limit import ResultLimit
from trimtab.loop.processors.retry import Retry
from trimtab.loop.processors.skills import Skills
from trimtab.loop.processors.slash import SlashCommands
from trimtab.loop.processors.steering import Steering
from trimtab.loop.processors.stop_gate import StopGate
from trimtab.loop.processors.tracked import Tracked
from trimtab.permissions.processor import Permissions
from trimtab.prompts.assemble import read_text
from trimtab.prompts.transform import UserContext
from trimtab.providers.meter import ContextMeter, count_text
from trimtab.providers.windows import DEFAULT
from trimtab.runtime.approvals import KeptApprovals
from trimtab.runtime.attached_images import AttachedImages
from trimtab.runtime.call_context import CallContext, make_context
from trimtab.runtime.git_caution import find_git_programs
from trimtab.runtime.models import Chosen
from trimtab.runtime.options import Client, SessionOptions
from trimtab.runtime.place import Place
from trimtab.runtime.recorder import Recorder
from trimtab.runtime.routing import build_routing
from trimtab.runtime.surroundings import temp_folder
from trimtab.runtime.toolset import choose_tools
from trimtab.session.inbox import Inbox
from trimtab.session.todos import read_todos
from trimtab.tools.arguments import read_arguments
from trimtab.tools.catalog import advise, translate

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trimtab.loop.beside import Writer
    from trimtab.loop.compact import Keeper


def build_run(place: Place, chosen: Chosen, options: SessionOptions, client: Client) -> Run:
    """The run of a session's main agent."""
    tools = choose_tools(options, client, place.situation(options.mode, chosen.model))
    processors = build_processors(place, chosen, options, client)
    recorder = next(one for one in processors if isinstance(one, Recorder))

    def tool_context(call_id: str) -> CallContext:
        return make_context(run, place, recorder, options.large_output, call_id)

    run = Run(
        session=place.session,
        inbox=Inbox(place.session),
        provider=chosen.provider,
        tools=tools,
        specs=tuple(tool.spec for tool in tools.values()),
        processors=processors,
        options=RunOptions(
            model=chosen.model,
            stream=options.stream,
            effort=options.effort,
            prompt_limit=chosen.prompt_limit,
            vision=options.vision,
        ),
        tool_context=tool_context,
        read_arguments=read_arguments,
        translate=translate,
        advise=advise,
        mode=options.mode,
    )
    if place.hooks is not None:
        from trimtab.hooks.listener import HookListener
        from trimtab.hooks.processor import end_hook

        listener = HookListener(place.hooks, run)
        run.before_idle = end_hook(place.hooks, run, listener.settle)
        place.session.subscribe(listener.on_event)
    if place.surroundings.worktree is not None:
        from trimtab.runtime.checkpoints import use_worktree

        worktree = place.surroundings.worktree
        use_worktree(run, place.session, worktree, commits=options.auto_commit)
    return run


def build_processors(
    place: Place, chosen: Chosen, options: SessionOptions, client: Client
) -> list[Processor]:
    """Who steps into the loop, in order: limits first, permissions last before a tool runs."""
    limits = options.limits
    processors: list[Processor] = []
    if limits.max_turns is not None:
        from trimtab.loop.processors.limits import TurnLimit

        processors.append(TurnLimit(limits.max_turns))
    processors += [Steering(), *build_routing(place), SlashCommands()]
    before, after, gate = build_hooks(place)
    permissions = build_permissions(place, options, client)
    if chosen.provider.name == "copilot":
        from trimtab.runtime.remote_exclusions import build_remote

        processors += build_remote(place, chosen.provider, permissions)
    images = AttachedImages(place.folder.images, permissions)
    processors += [*before, *build_customized(place, chosen), images, UserContext(), *after]
    tracked = [folder.path for folder in place.surroundings.folders]
    recorder = Recorder(
        place.session, place.workspace, place.folder, permissions.may_change, tracked
    )
    planning = PlanMode(permissions.may_change, place.has_read_only_agent)
    processors += [planning, permissions, recorder]
    if place.sandbox is not None:
        from trimtab.runtime.sandbox import build_guards

        processors += build_guards(place.sandbox, permissions.policy, client.ask)
    processors += [
        *gate,
        Tracked(
            place.folder.plan, place.folder.database, lambda: read_todos(place.folder.database)
        ),
        Progress(limits.max_repeats),
        Autopilot(read_text("nudge"), limits.max_continues),
        ContextUsage(ContextMeter(chosen.model), DEFAULT),
        Compaction(build_keeper(place, chosen), DEFAULT, options.compaction),
        ImageRemoval(),
        *build_titles(place, chosen),
        Retry(
            limits.retries,
            limits.retry_delay,
            limits.max_retry_delay,
            build_fallbacks(chosen),
            last_resort=client.ask_mode_switch,
        ),
        ResultLimit(count_text, DEFAULT),
    ]
    return processors


def build_customized(place: Place, chosen: Chosen) -> list[Processor]:
    """Who brings in what people wrote for the agent while it works."""
    custom = place.customizations
    if custom is None:
        return []
    custom.window = chosen.prompt_limit or DEFAULT
    return [
        Skills(custom.find_skill, custom.read_skill),
        DiscoveredInstructions(custom.touch, custom.render_touched),
    ]


def build_hooks(place: Place) -> tuple[list[Processor], list[Processor], list[Processor]]:
    """Hooks before and after a prompt gets its context, and the gate a run passes to stop."""
    if place.hooks is None:
        return [], [], []
    from trimtab.hooks.processor import Hooks, StartHooks, stop_hook
    from trimtab.runtime.external_tools import read_modified

    source = "resume" if place.resumed else "new"
    return (
        [Hooks(place.hooks, read_modified)],
        [StartHooks(place.hooks, source=source)],
        [StopGate(stop_hook(place.hooks, place.folder.events))],
    )


def find_writer(chosen: Chosen, role: str) -> "Callable[[], Awaitable[Writer | None]]":
    """Finds the model a person chose for a role, when it is needed."""

    async def find() -> "Writer | None":
        from trimtab.loop.beside import Writer

        one = await chosen.roles.get(role) if chosen.roles else None
        if one is None:
            return None
        return Writer(provider=one.provider, model=one.model, price=one.price)

    return find


def build_keeper(place: Place, chosen: Chosen) -> "Callable[[], Keeper]":
    """Makes, when the first compaction needs it, what knows what must survive one."""

    def build() -> "Keeper":
        from trimtab.runtime.keeper import SessionKeeper

        changes = place.session.projections.changes
        instruction = read_text("compaction")
        return SessionKeeper(place.folder, changes, instruction, find_writer(chosen, "compaction"))

    return build


def build_titles(place: Place, chosen: Chosen) -> list[Processor]:
    """Only where a person chose a model for titles: nobody pays for one unasked."""
    if place.resumed or chosen.roles is None or not chosen.roles.has("title"):
        return []
    from trimtab.loop.processors.title import Titles

    def keep(title: str) -> None:
        place.folder.update_metadata(summary=title)

    return [Titles(read_text("title"), find_writer(chosen, "title"), keep)]


def build_fallbacks(chosen: Chosen) -> Fallbacks:
    """The models a run may go on with."""
    return Fallbacks(
        [
            Fallback(
                provider=one.provider,
                model=one.model,
                price=one.price,
                prompt_limit=one.prompt_limit,
            )
            for one in chosen.fallbacks
        ]
    )


def build_permissions(place: Place, options: SessionOptions, client: Client) -> Permissions:
    """Who says whether a call may happen."""
    policy = msgspec.structs.replace(build_policy(place, options), client_judges=client.judges)
    if place.sandbox is not None:
        from trimtab.runtime.sandbox import confine

        policy = confine(policy, place.sandbox)
    hook = None
    if place.hooks is not None:
        from trimtab.hooks.processor import permission_hook

        hook = permission_hook(place.hooks)
    if place.home is None:
        return Permissions(policy, client.ask, hook=hook)
    kept = KeptApprovals(place.home.permissions, trust_key(options.cwd))
    granted = kept.load()
    policy = msgspec.structs.replace(
        policy,
        allow=(*policy.allow, *granted.rules),
        roots=(*policy.roots, *granted.directories),
    )
    return Permissions(policy, client.ask, kept, hook)


def read_rules(texts: tuple[str, ...]) -> tuple[Rule, ...]:
    if not texts:
        return ()
    from trimtab.permissions.rules import parse_rules

    return parse_rules(texts)


def find_skill_folders(place: Place) -> tuple[str, ...]:
    """Where the skills that the model is offered are: what they refer to lies beside them."""
    skills = (one for one in place.skills.values() if not one.is_command)
    return tuple(dict.fromkeys(os.path.dirname(skill.path) for skill in skills))


def build_policy(place: Place, options: SessionOptions) -> Policy:
    """What is allowed without asking, and in which directories."""
    chosen = options.permissions
    roots = [options.cwd, *chosen.add_dirs, place.folder.path]
    if chosen.temp_dir:
        roots.append(temp_folder())
    homes = (place.home.config, place.home.state) if place.home else ()
    return Policy(
        cwd=options.cwd,
        home=place.workspace.resolve("~"),
        homes=tuple(dict.fromkeys(os.path.realpath(home) for home in homes)),
        session_folder=place.folder.path,
        roots=tuple(os.path.realpath(root) for root in roots),
        readable=find_skill_folders(place),
        allow_all_tools=chosen.allow_all_tools,
        allow_all_paths=chosen.allow_all_paths,
        allow_all_urls=chosen.allow_all_urls,
        allow_destructive=chosen.allow_destructive,
        assess=options.assess,
        git_programs=find_git_programs(options.cwd),
        allow=(*read_rules(chosen.allow), *place.rules.allow),
        ask=place.rules.ask,
        deny=(*read_rules(chosen.deny), *place.rules.deny),
    )
