"""A fleet that a live session starts: its agent writes the todos, workers carry them out."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress

from msgspec.structs import replace

from trimtab.config.paths import find_home
from trimtab.contracts.errors import ExitCode, TrimtabError, UsageError
from trimtab.contracts.options import SessionOptions
from trimtab.contracts.run import Prompt
from trimtab.contracts.text import count
from trimtab.fleet.events import AnyEvent, Spent
from trimtab.fleet.fleets import FleetRequest, Fleets
from trimtab.fleet.plan import Todo, read_session_plan
from trimtab.fleet.report import describe_event, describe_report
from trimtab.fleet.repository import inspect_checkout
from trimtab.fleet.state import FleetState
from trimtab.fleet.worker_prompts import write_plan_prompt, write_share_prompt
from trimtab.runtime.live import LiveSession

CONVERSATION = "Finish what this conversation asks for."
"""The goal of a fleet that is started without one, in a session without todos."""
JOB = "fleet"
REPORT = (
    "<system_notification>\nThe fleet {id} has ended (exit code {code}). Nothing in the folder of "
    "this session was changed by it. Tell the user the outcome in a few sentences.\n\n{report}\n"
    "</system_notification>"
)


def share_folder(live: LiveSession, goal: Prompt) -> None:
    """Ask the session's own agent to lead sub-agents, where no fleet with worktrees can work.

    Raises `UsageError` if fleets are turned off.
    """
    custom = live.controls.setup.customizations
    if custom is not None:
        custom.require_feature("FLEET_COMMAND", "A fleet")
    reason = (
        "the model of the session comes from its client"
        if live.controls.options.provider is not None
        else "the folder is not in a git repository"
    )
    live.inform(JOB, f"Sub-agents of this session do the work and share its folder: {reason}.")
    text = write_share_prompt(goal.text.strip() or CONVERSATION)
    live.send(replace(goal, text=text, display=goal.text.strip() or CONVERSATION))


def can_have_worktrees(live: LiveSession) -> bool:
    """Return True if workers can be processes of their own in worktrees of a repository."""
    controls = live.controls
    return controls.options.provider is None and controls.setup.checkout.git_root is not None


async def start_in_session(live: LiveSession, goal: Prompt) -> str:
    """Start a fleet for a goal beside the session; return a sentence about it.

    Without a goal, the todos that the session has are carried out. Attachments reach the agent
    that writes the todos. Raises `UsageError`.
    """
    options, custom = live.controls.options, live.controls.setup.customizations
    if custom is not None:
        custom.require_feature("FLEET_COMMAND", "A fleet")
    if options.provider is not None:
        raise UsageError(
            "The model of this session comes from its client, and workers are processes of their "
            "own; configure a model for trimtab to use a fleet."
        )
    await asyncio.to_thread(inspect_checkout, options.cwd)
    if JOB in live.jobs:
        raise UsageError("A fleet is already working for this session; see `trimtab fleet list`.")
    if not goal.text.strip():
        try:
            todos = await _read_todos(live)
        except UsageError:
            if not live.projections.conversation.messages:
                raise UsageError("Say what the fleet is to do: /fleet GOAL.") from None
            live.add_job(JOB, _run(live, Prompt(text=CONVERSATION), plan=True))
            return "What the conversation asks for is split into todos; then a fleet starts."
        live.add_job(JOB, _run(live, Prompt(text="Carry out the todos."), plan=False))
        return f"A fleet starts with {count(len(todos), 'todo')}."
    live.add_job(JOB, _run(live, goal, plan=True))
    return "The goal is split into todos first; then a fleet carries them out."


async def _run(live: LiveSession, goal: Prompt, *, plan: bool) -> None:
    """Plan if needed, run the fleet, and let the session's agent report."""
    try:
        if plan:
            await _plan(live, goal)
        request = build_request(live, goal.text, await _read_todos(live))
        setup = live.controls.setup
        fleets = Fleets(find_home(setup.env), setup.env)
        folder = await asyncio.to_thread(fleets.create, request)
    except TrimtabError as error:
        live.warn("fleet", f"No fleet was started: {error.message}")
        return

    def on_event(event: AnyEvent) -> None:
        if line := describe_event(event):
            live.inform("fleet", line)

    live.inform("fleet", f"fleet {folder.id} started: follow it with `trimtab fleet show`")
    try:
        state = await fleets.run(folder, on_event)
    except TrimtabError as error:
        live.warn("fleet", f"The fleet {folder.id} failed: {error.message}")
        return
    live.send(_report(state, folder.id))


async def _plan(live: LiveSession, goal: Prompt) -> None:
    """Let the session's agent write todos, in plan mode. Raises `UsageError` if it fails."""
    mode = live.mode
    live.controls.set_mode("plan")
    try:
        text, shown = write_plan_prompt(goal.text), f"/fleet {goal.text}"
        live.send(replace(goal, text=text, display=shown))
        stop = await live.finished()
    finally:
        with suppress(TrimtabError):
            live.controls.set_mode(mode)
    if stop.exit_code:
        raise UsageError(f"the planning failed ({stop.message or stop.reason}); try again.")


async def _read_todos(live: LiveSession) -> tuple[Todo, ...]:
    return read_session_plan(*await live.controls.setup.todos.read_all())


def build_request(live: LiveSession, goal: str, todos: tuple[Todo, ...]) -> FleetRequest:
    """Return a fleet with the todos, and with the checks, limits and rules of a session."""
    options, rules = live.controls.options, live.controls.agent.parts.stop_rules
    spent = live.projections.usage.total
    tokens, usd = options.limits.max_tokens, options.limits.max_usd
    if tokens is not None:
        tokens -= (spent.input_tokens or 0) + (spent.output_tokens or 0)
    if usd is not None:
        usd -= spent.cost_usd or 0.0
    return FleetRequest(
        goal=goal,
        cwd=options.cwd,
        todos=todos,
        checks=tuple(rules.checks.commands) if rules is not None else (),
        limits=Spent(tokens=tokens, usd=usd),
        flags=tuple(render_options(options)),
    )


def render_options(options: SessionOptions) -> Iterator[str]:
    """Yield the flags that give a worker the model and the rules of a session."""
    granted, custom = options.permissions, options.customize
    switches = {
        "--allow-all-tools": granted.allow_all_tools,
        "--allow-all-paths": granted.allow_all_paths,
        "--allow-all-urls": granted.allow_all_urls,
        "--allow-destructive": granted.allow_destructive,
        "--disallow-temp-dir": not granted.temp_dir,
        "--trust-folder": options.trust_folder,
        "--offline": bool(options.offline),
        "--sandbox": options.sandbox is True,
        "--no-sandbox": options.sandbox is False,
        "--no-custom-instructions": options.instructions == "skip",
        "--disable-builtin-mcps": not custom.github.enabled,
    }
    yield from (name for name, given in switches.items() if given)
    lists = {
        "--allow-tool": granted.allow,
        "--deny-tool": granted.deny,
        "--add-dir": granted.add_dirs,
        "--available-tools": options.available_tools or (),
        "--excluded-tools": options.excluded_tools,
        "--fallback-model": options.fallback,
        "--secret-env-vars": options.secrets,
        "--additional-mcp-config": custom.mcp_config,
        "--plugin-dir": custom.plugin_dirs,
        "--disable-mcp-server": custom.disabled_servers,
        "--model": () if options.model is None else (options.model,),
        "--effort": () if options.effort is None else (options.effort,),
        "--agent-runtime": () if options.runtime is None else (options.runtime,),
        "--runtime-models": () if options.runtime_models is None else (options.runtime_models,),
        "--agent": () if custom.agent is None else (custom.agent,),
    }
    yield from (f"{name}={value}" for name, values in lists.items() for value in values)
    yield from (
        f"--feature={name}={'on' if enabled else 'off'}"
        for name, enabled in custom.features.items()
    )


def _report(state: FleetState, fleet: str) -> Prompt:
    text = REPORT.format(id=fleet, code=int(state.exit_code), report=describe_report(state))
    status = "completed" if state.exit_code == ExitCode.SUCCESS else "failed"
    return Prompt(
        text=text,
        source="notification",
        billable=False,
        notification={
            "type": "agent_completed",
            "agentId": fleet,
            "agentType": "fleet",
            "status": status,
            "description": state.started.goal if state.started else "",
        },
    )
