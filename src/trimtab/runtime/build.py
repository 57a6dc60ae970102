"""Puts the parts of an agent together. The order of processors is policy, and it stands here."""

import os
from typing import TYPE_CHECKING

import msgspec

from trimtab.config.paths import Home
from trimtab.contracts.permission import Policy, Rule
from trimtab.contracts.processor import Processor
from trimtab.contracts.run import Run, RunOptions
from trimtab.loop.fallback import Fallback, Fallbacks
from trimtab.loop.processors.autopilot import Autopilot
from trimtab.loop.processors.compaction import Compaction
from trimtab.loop.processors.context_usage import ContextUsage
from trimtab.loop.processors.images import ImageRemoval
from trimtab.loop.processors.limits import TurnLimit
from trimtab.loop.processors.plan_mode import PlanMode
from trimtab.loop.processors.progress import Progress
from trimtab.loop.processors.retry import Retry
from trimtab.loop.processors.steering import Steering
from trimtab.loop.processors.stop_gate import StopGate
from trimtab.permissions.processor import Permissions
from trimtab.prompts.assemble import read_text
from trimtab.prompts.transform import UserContext
from trimtab.providers.meter import ContextMeter
from trimtab.providers.windows import DEFAULT
from trimtab.runtime.approvals import KeptApprovals, find_location
from trimtab.runtime.client_hooks import ClientHooks, HookCaller, StartHooks, end_hook, stop_hook
from trimtab.runtime.models import Chosen
from trimtab.runtime.options import Client, SessionOptions
from trimtab.runtime.surroundings import Surroundings, temp_folder
from trimtab.runtime.toolset import choose_tools
from trimtab.session.folder import SessionFolder
from trimtab.session.inbox import Inbox
from trimtab.session.session import Session
from trimtab.tools.arguments import read_arguments
from trimtab.workspace.local import LocalWorkspace

if TYPE_CHECKING:
    from collections.abc import Callable

    from trimtab.loop.compact import Keeper


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where an agent works: its session, its folder on disk, its workspace."""

    session: Session
    folder: SessionFolder
    workspace: LocalWorkspace
    surroundings: Surroundings
    home: Home | None = None
    resumed: bool = False


class CallContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool is given besides its arguments."""

    session: Session
    session_id: str
    call_id: str
    workspace: LocalWorkspace
    files: str

    def progress(self, text: str) -> None:
        from trimtab.contracts.events.tool import ToolExecutionPartialResult

        self.session.emit(
            ToolExecutionPartialResult(tool_call_id=self.call_id, partial_output=text)
        )


def build_run(place: Place, chosen: Chosen, options: SessionOptions, client: Client) -> Run:
    """The run of a session's main agent."""
    tools = choose_tools(options, client, mode=options.mode)

    def tool_context(call_id: str) -> CallContext:
        return CallContext(
            session=place.session,
            session_id=place.session.id,
            call_id=call_id,
            workspace=place.workspace,
            files=place.folder.files,
        )

    run = Run(
        session=place.session,
        inbox=Inbox(place.session),
        provider=chosen.provider,
        tools=tools,
        specs=tuple(tool.spec for tool in tools.values()),
        processors=build_processors(place, chosen, options, client),
        options=RunOptions(
            model=chosen.model,
            stream=options.stream,
            effort=options.effort,
            prompt_limit=chosen.prompt_limit,
        ),
        tool_context=tool_context,
        read_arguments=read_arguments,
        mode=options.mode,
    )
    if client.hooks is not None:
        run.before_idle = end_hook(HookCaller(client.hooks, options.cwd), run)
    return run


def build_processors(
    place: Place, chosen: Chosen, options: SessionOptions, client: Client
) -> list[Processor]:
    """Who steps into the loop, in order: limits first, permissions last before a tool runs."""
    limits = options.limits
    processors: list[Processor] = []
    if limits.max_turns is not None:
        processors.append(TurnLimit(limits.max_turns))
    processors.append(Steering())
    hooks = HookCaller(client.hooks, options.cwd) if client.hooks else None
    if hooks is not None:
        processors.append(ClientHooks(hooks))
    processors.append(UserContext())
    if hooks is not None:
        processors.append(StartHooks(hooks, source="resume" if place.resumed else "new"))
    permissions = build_permissions(place, options, client)
    processors += [PlanMode(permissions.may_change), permissions]
    if hooks is not None:
        processors.append(StopGate(stop_hook(hooks)))
    processors += [
        Autopilot(read_text("nudge"), limits.max_continues),
        Progress(limits.max_repeats),
        ContextUsage(ContextMeter(chosen.model), DEFAULT),
        Compaction(build_keeper(place, chosen), DEFAULT, options.compaction),
        ImageRemoval(),
        Retry(limits.retries, limits.retry_delay, limits.max_retry_delay, build_fallbacks(chosen)),
    ]
    return processors


def build_keeper(place: Place, chosen: Chosen) -> "Callable[[], Keeper]":
    """Makes, when the first compaction needs it, what knows what must survive one."""

    def build() -> "Keeper":
        from trimtab.loop.compact import Summarizer
        from trimtab.runtime.keeper import SessionKeeper

        async def find_summarizer() -> Summarizer | None:
            one = await chosen.roles.get("compaction") if chosen.roles else None
            if one is None:
                return None
            return Summarizer(provider=one.provider, model=one.model, price=one.price)

        changes = place.session.projections.changes
        return SessionKeeper(place.folder, changes, read_text("compaction"), find_summarizer)

    return build


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
    if place.home is None:
        return Permissions(policy, client.ask)
    kept = KeptApprovals(place.home.permissions, find_location(options.cwd, place.surroundings))
    granted = kept.load()
    policy = msgspec.structs.replace(
        policy,
        allow=(*policy.allow, *granted.rules),
        roots=(*policy.roots, *granted.directories),
    )
    return Permissions(policy, client.ask, kept)


def read_rules(texts: tuple[str, ...]) -> tuple[Rule, ...]:
    if not texts:
        return ()
    from trimtab.permissions.rules import parse_rules

    return parse_rules(texts)


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
        allow_all_tools=chosen.allow_all_tools,
        allow_all_paths=chosen.allow_all_paths,
        allow_all_urls=chosen.allow_all_urls,
        allow_destructive=chosen.allow_destructive,
        allow=read_rules(chosen.allow),
        deny=read_rules(chosen.deny),
    )
