"""Slash commands, typed as a prompt: `/context`, `/limits tokens 50000`, `/model ID`."""

import difflib
import os
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING

import msgspec

from trimtab.agents.system_prompt import measure_parts
from trimtab.contracts.errors import UsageError
from trimtab.contracts.provider import CREDIT_USD
from trimtab.contracts.run import Run
from trimtab.contracts.text import count
from trimtab.customize.overview import survey
from trimtab.providers.meter import ContextMeter
from trimtab.providers.windows import DEFAULT
from trimtab.runtime.git_commands import publishes
from trimtab.runtime.queue_command import QUEUE, change_queue, shorten
from trimtab.runtime.session_commands import (
    MCP,
    MCP_ACTIONS,
    PERMISSIONS,
    TASKS,
    add_folder,
    allow_all,
    change_folder,
    change_permissions,
    change_servers,
    change_tasks,
    list_folders,
    rename,
    reset_permissions,
    show_session,
    show_version,
)
from trimtab.runtime.session_views import (
    describe_diff,
    describe_skills,
)
from trimtab.runtime.undo_text import describe_plan, summarise_plan
from trimtab.undo.history import UndoRequest
from trimtab.undo.rewind import list_points

if TYPE_CHECKING:
    from trimtab.contracts.customization import Customization
    from trimtab.contracts.options import LimitOptions
    from trimtab.runtime.live import LiveSession

_COMMAND = re.compile(r"/([A-Za-z?][\w:.-]*)(?:\s+(.*))?", re.DOTALL)


class Invocation(msgspec.Struct, frozen=True):
    """A slash command that was typed in a session; `arguments` is the text after its name."""

    live: "LiveSession"
    run: Run
    arguments: str


Handler = Callable[[Invocation], Awaitable[str]]


class SlashCommand(msgspec.Struct, frozen=True):
    """A row of the table of commands. Those without a handler exist in the terminal only."""

    name: str
    arguments: str
    help: str
    handler: Handler | None = None
    while_busy: bool = False
    """True if it may run while the agent works."""
    values: tuple[str, ...] = ()
    """Arguments that faces can complete."""
    setting: str = ""
    """The setting below `host.` that switches it; empty if it is always there."""


async def answer_command(live: "LiveSession", run: Run, text: str) -> str | None:
    """Run a slash command and return its output; None if the text is not a command.

    Raises `UsageError` if the command is unknown or its arguments are invalid.
    """
    found = find_command(live, text)
    if found is None:
        return None
    command, arguments = found
    if command.handler is None:
        raise UsageError(
            f"/{command.name} works only in an interactive session; start one with `trimtab`."
        )
    return await command.handler(Invocation(live, run, arguments))


def find_command(live: "LiveSession", text: str) -> tuple[SlashCommand, str] | None:
    """Return a command and its arguments; None if the text is a prompt.

    Paths, skills, commands of clients and `/SERVER:PROMPT` count as prompts. Raises `UsageError`
    for an unknown name.
    """
    if re.match(r"!\s*\S", text):
        raise UsageError(
            "Lines that begin with ! run a shell command in an interactive session only; begin "
            "with a space to send it as a prompt."
        )
    match = _COMMAND.fullmatch(text.strip())
    if match is None or not text.startswith("/"):
        return None
    name, arguments = match[1].lower(), (match[2] or "").strip()
    command = COMMANDS.get(ALIASES.get(name, name))
    if command is not None:
        if not is_offered(live, command):
            raise UsageError(
                f"/{command.name} is switched off; set host.{command.setting} to true."
            )
        return command, arguments
    if match[1] in live.client_commands() or is_skill(live, match[1]):
        return None
    server, colon, _ = match[1].partition(":")
    if colon and live.controls.servers.has_prompts(server):
        return None
    if os.path.exists(f"/{match[1]}"):
        return None
    raise UsageError(describe_unknown(name, [*COMMANDS, *other_names(live)]))


def list_commands(live: "LiveSession") -> list[SlashCommand]:
    """Return the commands that a session has."""
    return [command for command in COMMANDS.values() if is_offered(live, command)]


def is_offered(live: "LiveSession", command: SlashCommand) -> bool:
    return not command.setting or live.controls.is_enabled(command.setting)


def is_skill(live: "LiveSession", name: str) -> bool:
    """Return True if the person can call a skill or prompt file by this name.

    Raises `UsageError` for a skill that exists but is disabled or reserved for the model.
    """
    custom = live.controls.setup.customizations
    skill = custom.skills.skills.get(name) if custom is not None else None
    if skill is None:
        return False
    if not skill.enabled:
        raise UsageError(
            f"The skill {name} is disabled; enable it with `trimtab skills enable {name}`."
        )
    if not skill.user_invocable:
        raise UsageError(
            f"Only the model can call the skill {name}; ask for it in a prompt instead."
        )
    return True


def other_names(live: "LiveSession") -> Iterator[str]:
    """Yield the names of skills, prompt files and client commands."""
    custom = live.controls.setup.customizations
    if custom is not None:
        yield from (skill.name for skill in custom.skills.active if skill.user_invocable)
    yield from live.client_commands()


def describe_unknown(name: str, known: list[str]) -> str:
    similar = [f"/{match}" for match in difflib.get_close_matches(name, known, 2)]
    advice = f"did you mean {' or '.join(similar)}?" if similar else "see /help."
    return f"Unknown command /{name}; {advice} Begin with a space to send it as a prompt."


async def show_context(invocation: Invocation) -> str:
    """Return how many tokens of the context window each part of the request uses."""
    meter = ContextMeter(invocation.run.agent.model.name)
    session = invocation.run.session
    found = invocation.run.measured or meter.measure(
        session.conversation, invocation.run.agent.specs, session.prompt_tokens
    )
    limit = invocation.run.agent.model.prompt_limit or DEFAULT
    rows = [
        ("system prompt", found.system),
        ("tool definitions", found.tools),
        ("conversation", found.conversation),
        ("free", max(0, limit - found.total)),
    ]
    lines = [f"{name:<18}{count:>10,}  {count / limit:>5.1%}" for name, count in rows]
    title = f"{invocation.run.agent.model.name}: {found.total:,} of {limit:,} tokens"
    wire = f"{'on the wire':<18}{found.size:>10,}  bytes"
    return "\n".join((title, *lines, wire, *_list_parts(invocation)))


def _list_parts(invocation: Invocation) -> list[str]:
    """Return a line with the tokens of each section and tool, as `trimtab prompt show` does."""
    prompt, run = invocation.live.controls.prompt, invocation.run
    parts = measure_parts(run.agent.model.name, prompt.parts, run.agent.specs)
    return [f"  {part.tokens:>8,}  {part.name}" for part in parts]


async def show_customizations(invocation: Invocation) -> str:
    """Return the customizations the session loads, as `trimtab customizations` lists them."""
    controls = invocation.live.controls
    custom = controls.setup.customizations
    if custom is None:
        return "This session loads no customizations."
    entries = survey(custom.env, controls.options).entries
    lines = [
        f"{entry.kind} {entry.name} ({entry.source})" + _unused(entry)
        for entry in entries
        if invocation.arguments in ("", entry.kind)
    ]
    return "\n".join(lines) or "No customizations."


def _unused(entry: "Customization") -> str:
    used = entry.enabled and entry.trusted and not entry.overridden_by
    return "" if used else " not used"


async def show_usage(invocation: Invocation) -> str:
    lines = [
        f"{model}: {count(usage.requests, 'call')}, {count(usage.input_tokens or 0, 'token')} in, "
        f"{usage.output_tokens or 0:,} out, {_money(usage.cost_usd)}"
        for model, usage in invocation.live.projections.usage.models.items()
    ]
    return "\n".join(lines) or "No model calls yet."


async def change_limits(invocation: Invocation) -> str:
    controls = invocation.live.controls
    if invocation.arguments:
        controls.set_limits(read_limits(invocation.arguments, controls.options.limits))
    limits = controls.options.limits
    rows = [
        ("tokens", limits.max_tokens),
        ("usd", limits.max_usd),
        ("turns", limits.max_turns),
        ("continues", limits.continues),
    ]
    return "\n".join(f"{name}: {'no limit' if value is None else value}" for name, value in rows)


def read_limits(text: str, before: "LimitOptions") -> "LimitOptions":
    """Parse `tokens 5000 usd 2.50 credits 100 turns 20 continues 3`; `off` removes a limit."""
    words = text.replace("=", " ").split()
    if len(words) % 2:
        raise UsageError(f"{text!r} is not a list of names and values; write /limits {LIMITS}.")
    changes: dict[str, float | int | None] = {}
    for name, value in zip(words[::2], words[1::2], strict=True):
        if name not in LIMIT_FIELDS:
            raise UsageError(f"Unknown limit {name!r}; write /limits {LIMITS}.")
        number: float | None = None
        if value != "off":
            try:
                number = float(value)
            except ValueError:
                number = -1.0
            if not 0 <= number < float("inf"):
                raise UsageError(f"{value!r} is not a valid limit; write a number or off.")
        field = LIMIT_FIELDS[name]
        if number is not None:
            number = number * CREDIT_USD if name == "credits" else number
            changes[field] = number if field == "max_usd" else int(number)
        else:
            changes[field] = None
    return msgspec.structs.replace(before, **changes)


async def compact(invocation: Invocation) -> str:
    compaction = invocation.live.controls.agent.parts.compaction
    if len(invocation.run.session.conversation.messages) < 2:
        return "There is nothing to summarise yet."
    outcome = await compaction.compact(invocation.run, "manual", invocation.arguments)
    return (
        f"{count(outcome.messages_removed, 'message')} summarised: the conversation went from "
        f"{outcome.tokens_before:,} to {count(outcome.tokens_after, 'token')}."
    )


async def change_model(invocation: Invocation) -> str:
    if not invocation.arguments:
        return f"The model is {invocation.run.agent.model.name}."
    checked = await invocation.live.controls.check_model(invocation.arguments)
    await invocation.live.controls.switch_model(invocation.arguments)
    note = "" if checked else " Its service does not list its models, so the name is unchecked."
    return f"The model is {invocation.run.agent.model.name}.{note}"


async def change_effort(invocation: Invocation) -> str:
    """Show or set the reasoning effort of the current model."""
    controls, model = invocation.live.controls, invocation.run.agent.model.name
    levels = await controls.list_efforts()
    level = invocation.arguments
    if level and level != "default" and levels and level not in levels:
        raise UsageError(f"{model} has no effort {level!r}; use one of {', '.join(levels)}.")
    if level:
        controls.set_effort(None if level == "default" else level)
    known = f" It has {', '.join(levels)}." if levels else ""
    return f"The effort of {model} is {controls.effort or 'its default'}.{known}"


async def plan(invocation: Invocation) -> str:
    """Switch to plan mode; with a text, send it as the prompt to plan for."""
    invocation.live.controls.set_mode("plan")
    if invocation.arguments:
        invocation.live.send(invocation.arguments)
    return "The mode is plan."


async def change_mode(invocation: Invocation) -> str:
    if invocation.arguments:
        if invocation.arguments not in MODES:
            raise UsageError(
                f"Unknown mode {invocation.arguments!r}; use one of {', '.join(MODES)}."
            )
        invocation.live.controls.set_mode(invocation.arguments)  # type: ignore[arg-type]
    return f"The mode is {invocation.run.agent.mode}."


async def undo(invocation: Invocation) -> str:
    return undo_or_redo(invocation, "undo")


async def redo(invocation: Invocation) -> str:
    return undo_or_redo(invocation, "redo")


def undo_or_redo(invocation: Invocation, action: str) -> str:
    """Undo the file changes of a turn, or redo the last undo; or preview either."""
    words = invocation.arguments.split()
    preview = "preview" in words
    numbers = [word for word in words if word != "preview"]
    if len(numbers) > (action == "undo") or not all(word.isdecimal() for word in numbers):
        usage = "[preview] [TURN]" if action == "undo" else "[preview]"
        raise UsageError(f"Unknown argument {invocation.arguments!r}; write /{action} {usage}.")
    request = UndoRequest(turn=int(numbers[0]) if numbers else None)
    history = invocation.live.history
    plan = history.plan_redo(request) if action == "redo" else history.plan_undo(request)
    if not preview:
        invocation.live.require_quiet()
        plan = history.apply(plan)
    lines = [*describe_plan(plan, history, diffs=preview), *summarise_plan(plan, preview=preview)]
    if not preview and action == "undo":
        lines.append("Reverse this with /redo.")
    return "\n".join(lines)


async def show_diff(invocation: Invocation) -> str:
    return describe_diff(invocation.live)


async def show_history(invocation: Invocation) -> str:
    """Return the prompts of this session that contain all words, with their times."""
    words = invocation.arguments.lower().split()
    lines = [
        f"{point.turn:>3}  {point.timestamp[11:16]}  {shorten(point.text)}"
        for point in list_points(invocation.live.folder.events)
        if all(word in point.text.lower() for word in words)
    ]
    return "\n".join(lines) or "No prompt contains these words."


async def show_skills(invocation: Invocation) -> str:
    return describe_skills(invocation.live)


async def show_help(invocation: Invocation) -> str:
    rows = [
        (f"/{command.name} {command.arguments}".rstrip(), command.help)
        for command in list_commands(invocation.live)
    ]
    width = max(len(usage) for usage, _ in rows)
    return "\n".join(f"{usage:<{width}}  {text}" for usage, text in (*rows, SHELL))


def _money(usd: float | None) -> str:
    return "cost unknown" if usd is None else f"${usd:.4f}"


MODES = ("interactive", "plan", "autopilot")
LIMITS = "[tokens N] [usd N] [credits N] [turns N] [continues N]"
LIMIT_FIELDS = {
    "tokens": "max_tokens",
    "usd": "max_usd",
    "credits": "max_usd",
    "turns": "max_turns",
    "continues": "max_continues",
}

SHELL = ("!COMMAND", "Run a command yourself.")
ALIASES = {
    "quit": "exit",
    "new": "clear",
    "?": "help",
    "agents": "tasks",
    "sessions": "resume",
    "cd": "cwd",
    "yolo": "allow-all",
}

COMMANDS = {
    command.name: command
    for command in (
        SlashCommand("help", "", "Show these commands.", show_help, while_busy=True),
        SlashCommand(
            "add-dir", "PATH", "Let the tools use another folder.", add_folder, while_busy=True
        ),
        SlashCommand(
            "allow-all", "", "Allow everything in this session.", allow_all, while_busy=True
        ),
        SlashCommand(
            "branch",
            "[NAME]",
            "List the branches of git, or switch to one; a new name makes one.",
            publishes("branch"),
            setting="branchSupport.enabled",
        ),
        SlashCommand("clear", "", "Start a new session; the old one is kept."),
        SlashCommand(
            "commit",
            "[WISH]",
            "Commit what is staged, or everything; the model writes the message.",
            publishes("commit"),
        ),
        SlashCommand("compact", "[INSTRUCTIONS]", "Summarise the conversation now.", compact),
        SlashCommand(
            "context", "", "Show the use of the context window.", show_context, while_busy=True
        ),
        SlashCommand("copy", "", "Copy the last answer to the clipboard.", while_busy=True),
        SlashCommand(
            "create-draft-pr",
            "[WISH]",
            "As /create-pr, as a draft.",
            publishes("create-draft-pr"),
        ),
        SlashCommand(
            "create-pr",
            "[WISH]",
            "Commit, push and open a pull request, on a branch of its own.",
            publishes("create-pr"),
        ),
        SlashCommand(
            "customizations",
            "[KIND]",
            "List the customizations in use.",
            show_customizations,
            while_busy=True,
        ),
        SlashCommand("cwd", "[PATH]", "Show the working directory, or change it.", change_folder),
        SlashCommand(
            "diff", "", "Show what this session changed in files.", show_diff, while_busy=True
        ),
        SlashCommand(
            "effort",
            "[LEVEL]",
            "Show or set the reasoning effort of the model.",
            change_effort,
            values=("low", "medium", "high", "default"),
            setting="thinkingEffort.enabled",
        ),
        SlashCommand("exit", "", "Leave; so does Ctrl-D.", while_busy=True),
        SlashCommand(
            "fleet",
            "[GOAL]",
            "Split a goal among agents in worktrees, and merge their work into a branch.",
            lambda invocation: invocation.live.request_fleet(invocation.arguments),
        ),
        SlashCommand(
            "history",
            "[WORDS]",
            "Search earlier prompts.",
            show_history,
            while_busy=True,
        ),
        SlashCommand(
            "limits",
            "[tokens N] [usd N] …",
            "Show or set limits.",
            change_limits,
            while_busy=True,
            values=tuple(LIMIT_FIELDS),
        ),
        SlashCommand(
            "list-dirs", "", "Show the folders the tools may use.", list_folders, while_busy=True
        ),
        SlashCommand(
            "mode", "[NAME]", "Show or change the mode.", change_mode, while_busy=True, values=MODES
        ),
        SlashCommand(
            "merge",
            "[BRANCH]",
            "Merge a branch; in a worktree without a name, its work into your folder.",
            publishes("merge"),
        ),
        SlashCommand(
            "mcp",
            MCP,
            "Show the MCP servers, switch or restart them, and see their logs and prompts.",
            change_servers,
            while_busy=True,
            values=MCP_ACTIONS,
        ),
        SlashCommand("model", "[ID]", "Show or change the model.", change_model),
        SlashCommand(
            "permissions",
            PERMISSIONS,
            "Show the rules that decide about actions, or change how much is asked.",
            change_permissions,
            while_busy=True,
            values=("show", "default", "allow-all", "reset"),
        ),
        SlashCommand(
            "queue",
            QUEUE,
            "Show, edit, move, send or drop waiting prompts; pause the queue.",
            change_queue,
            while_busy=True,
            values=("list", "edit", "move", "send", "drop", "pause", "resume"),
        ),
        SlashCommand(
            "plan",
            "[PROMPT]",
            "Switch to plan mode, and plan for the prompt.",
            plan,
            setting="planCommand.enabled",
        ),
        SlashCommand("redo", "[preview]", "Reverse the last undo.", redo, values=("preview",)),
        SlashCommand("rename", "NAME", "Give this session a name.", rename, while_busy=True),
        SlashCommand(
            "reset-allowed-tools",
            "",
            "Ask again about what was allowed for this session.",
            reset_permissions,
            while_busy=True,
        ),
        SlashCommand("resume", "[ID]", "Continue an earlier session."),
        SlashCommand("rewind", "", "Return to before an earlier prompt."),
        SlashCommand(
            "session",
            "",
            "Show the id, name and log of this session.",
            show_session,
            while_busy=True,
        ),
        SlashCommand("skills", "", "Show the skills in use.", show_skills, while_busy=True),
        SlashCommand(
            "sync",
            "",
            "Pull from and push to the remote of the branch.",
            publishes("sync"),
        ),
        SlashCommand(
            "tasks",
            TASKS,
            "Show, stop, write to or move agents and commands to the background.",
            change_tasks,
            while_busy=True,
            values=("list", "stop", "send", "background"),
        ),
        SlashCommand("theme", "[NAME]", "Choose the colours.", while_busy=True),
        SlashCommand(
            "undo",
            "[preview] [TURN]",
            "Undo the file changes of the last turn, or of another one.",
            undo,
            values=("preview",),
        ),
        SlashCommand(
            "update-pr",
            "[WISH]",
            "Commit and push, and write the text of the pull request again.",
            publishes("update-pr"),
        ),
        SlashCommand("version", "", "Show the version.", show_version, while_busy=True),
        SlashCommand("vim", "", "Switch between vi and emacs keys.", while_busy=True),
        SlashCommand(
            "worktree",
            "[NAME]",
            "Start a session in a git worktree of its own.",
            setting="isolationOption.enabled",
        ),
        SlashCommand("usage", "", "Show tokens and cost by model.", show_usage, while_busy=True),
    )
}
