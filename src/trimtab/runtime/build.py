"""Puts the parts of an agent together. The order of processors is policy, and it stands here."""

import os
from collections.abc import Collection

import msgspec

from trimtab.contracts.permission import Policy
from trimtab.contracts.processor import Processor
from trimtab.contracts.provider import Provider
from trimtab.contracts.run import Mode, Run, RunOptions
from trimtab.contracts.tool import Tool
from trimtab.loop.processors.autopilot import Autopilot
from trimtab.loop.processors.limits import TurnLimit
from trimtab.loop.processors.plan_mode import PlanMode
from trimtab.loop.processors.retry import Retry
from trimtab.loop.processors.steering import Steering
from trimtab.permissions.processor import Permissions
from trimtab.prompts.assemble import PromptFacts, assemble, read_sections, read_text
from trimtab.prompts.customize import change_sections, join
from trimtab.prompts.transform import UserContext
from trimtab.runtime.options import Client, SessionOptions
from trimtab.runtime.surroundings import (
    Surroundings,
    list_entries,
    system_name,
    temp_folder,
)
from trimtab.session.folder import SessionFolder
from trimtab.session.inbox import Inbox
from trimtab.session.session import Session
from trimtab.tools.arguments import read_arguments
from trimtab.tools.catalog import builtin_tools
from trimtab.version import __version__
from trimtab.workspace.local import LocalWorkspace


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where an agent works: its session, its folder on disk, its workspace."""

    session: Session
    folder: SessionFolder
    workspace: LocalWorkspace
    surroundings: Surroundings


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


def build_run(
    place: Place, provider: Provider, model: str, options: SessionOptions, client: Client
) -> Run:
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

    return Run(
        session=place.session,
        inbox=Inbox(place.session),
        provider=provider,
        tools=tools,
        specs=tuple(tool.spec for tool in tools.values()),
        processors=build_processors(place, options, client),
        options=RunOptions(model=model, stream=options.stream, effort=options.effort),
        tool_context=tool_context,
        read_arguments=read_arguments,
        mode=options.mode,
    )


def build_processors(place: Place, options: SessionOptions, client: Client) -> list[Processor]:
    """Who steps into the loop, in order: limits first, permissions last before a tool runs."""
    limits = options.limits
    processors: list[Processor] = []
    if limits.max_turns is not None:
        processors.append(TurnLimit(limits.max_turns))
    processors += [
        Steering(),
        UserContext(),
        PlanMode(place.folder.path),
        Permissions(build_policy(place, options), ask),
        Autopilot(read_text("nudge"), limits.max_continues),
        Retry(limits.retries, limits.retry_delay),
    ]
    return processors


def build_policy(place: Place, options: SessionOptions) -> Policy:
    """What is allowed without asking, and in which directories."""
    chosen = options.permissions
    roots = [options.cwd, *chosen.add_dirs, place.folder.path]
    if chosen.temp_dir:
        roots.append(temp_folder())
    return Policy(
        cwd=options.cwd,
        roots=tuple(os.path.realpath(root) for root in roots),
        allow_all_tools=chosen.allow_all_tools,
        allow_all_paths=chosen.allow_all_paths,
        allow_all_urls=chosen.allow_all_urls,
        allow=chosen.allow,
        deny=chosen.deny,
    )


def choose_tools(options: SessionOptions) -> dict[str, Tool]:
    """The tools of a session: the built-in ones, filtered, and `task_complete` where it belongs."""
    tools = builtin_tools()
    if options.mode != "autopilot":
        tools.pop("task_complete", None)
    if options.available_tools is not None:
        tools = {name: tool for name, tool in tools.items() if name in options.available_tools}
    return {name: tool for name, tool in tools.items() if name not in options.excluded_tools}


def build_prompt(run: Run, place: Place) -> str:
    """The system prompt for a run, as things are now."""
    around = place.surroundings
    return assemble(
        PromptFacts(
            version=__version__,
            cwd=around.cwd,
            system=system_name(),
            listing=list_entries(around.cwd),
            tools=frozenset(run.tools),
            mode=run.mode,
            git_root=around.git_root,
            branch=around.branch,
        )
    )
