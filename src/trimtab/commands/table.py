"""Slash commands, typed as a prompt: `/context`, `/limits tokens 50000`, `/model ID`."""

import difflib
import os
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING

import msgspec

from trimtab.commands.absent import ABSENT
from trimtab.commands.choices import (
    LIMIT_FIELDS,
    MODES,
    SETTINGS,
    change_agent,
    change_effort,
    change_limits,
    change_mode,
    change_model,
    change_settings,
    enter_mode,
)
from trimtab.commands.copies import SHARE, ask, fork, share
from trimtab.commands.git import publishes
from trimtab.commands.prompts import expand
from trimtab.commands.queue import QUEUE, change_queue
from trimtab.commands.session import (
    MCP,
    MCP_ACTIONS,
    PERMISSIONS,
    SESSION,
    TASKS,
    add_folder,
    allow_all,
    change_folder,
    change_permissions,
    change_servers,
    change_tasks,
    compact,
    list_folders,
    redo,
    rename,
    reset_permissions,
    show_session,
    undo,
)
from trimtab.commands.views import (
    show_changelog,
    show_context,
    show_customizations,
    show_diff,
    show_history,
    show_instructions,
    show_skills,
    show_usage,
    show_version,
)
from trimtab.contracts.errors import UsageError
from trimtab.contracts.run import Run

if TYPE_CHECKING:
    from trimtab.runtime.live import LiveSession

_COMMAND = re.compile(r"/([A-Za-z?][\w:.-]*)(?:\s+(.*))?", re.DOTALL)


class Invocation(msgspec.Struct, frozen=True):
    """A slash command that was typed in a session; `arguments` is the text after its name."""

    live: "LiveSession"
    run: Run
    arguments: str


Handler = Callable[[Invocation], Awaitable[str]]


class SlashCommand(msgspec.Struct, frozen=True):
    """A row of the table of commands.

    Those without a handler stand for a prompt, or exist in the terminal only.
    """

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
    is_prompt: bool = False
    """True if it stands for a prompt; a skill or prompt file of the same name replaces it."""


async def answer_command(live: "LiveSession", run: Run, text: str) -> str | None:
    """Run a slash command and return its output; None if the text is or stands for a prompt.

    Raises `UsageError` if the command is unknown or its arguments are invalid.
    """
    found = find_command(live, text)
    if found is None or found[0].is_prompt:
        return None
    command, arguments = found
    if command.handler is None:
        raise UsageError(
            f"/{command.name} works only in an interactive session; start one with `trimtab`."
        )
    return await command.handler(Invocation(live, run, arguments))


def expand_command(live: "LiveSession", text: str) -> str | None:
    """Return the prompt that a slash command stands for; None if it stands for none.

    Raises `UsageError` if the command is unknown or its arguments are invalid.
    """
    found = find_command(live, text)
    if found is None or not found[0].is_prompt:
        return None
    checkout = live.controls.setup.checkout
    return expand(found[0].name, found[1], checkout.git_root or live.controls.options.cwd)


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
    command = get_command(live, name)
    if command is not None:
        if not is_enabled(live, command):
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
    if name in ABSENT:
        raise UsageError(ABSENT[name])
    raise UsageError(describe_unknown(name, [*COMMANDS, *ALIASES, *other_names(live)]))


def get_command(live: "LiveSession", name: str) -> SlashCommand | None:
    """Return the command with a name or alias; None if there is none or a skill replaces it."""
    command = COMMANDS.get(ALIASES.get(name, name))
    if command is not None and command.is_prompt and name in other_names(live):
        return None
    return command


def list_commands(live: "LiveSession") -> list[SlashCommand]:
    """Return the commands that a session has."""
    return [
        command
        for command in COMMANDS.values()
        if is_enabled(live, command) and get_command(live, command.name) is not None
    ]


def is_enabled(live: "LiveSession", command: SlashCommand) -> bool:
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


async def show_help(invocation: Invocation) -> str:
    """Return all commands, or how to write one of them."""
    if invocation.arguments:
        name = invocation.arguments.split()[0].lstrip("/").lower()
        found = find_command(invocation.live, f"/{name}")
        if found is None:
            raise UsageError(f"/{name} is not a command of Trimtab's; see /skills.")
        return f"{write_usage(found[0])}\n{found[0].help}"
    rows = list_usages(invocation.live)
    width = max(len(usage) for usage, _ in rows)
    return "\n".join(f"{usage:<{width}}  {text}" for usage, text in rows)


def list_usages(live: "LiveSession") -> list[tuple[str, str]]:
    """Return how to write each command, shortened if it is long, and what it does."""
    rows = []
    for command in sorted(list_commands(live), key=lambda command: command.name):
        usage = write_usage(command)
        rows.append((usage if len(usage) <= WIDEST else f"/{command.name} …", command.help))
    return [*rows, SHELL]


def write_usage(command: SlashCommand) -> str:
    return f"/{command.name} {command.arguments}".rstrip()


WIDEST = 26
"""Characters of a usage in the list of all commands; `/help NAME` shows longer ones."""
SHELL = ("!COMMAND", "Run a command yourself.")
ALIASES = {
    "quit": "exit",
    "new": "clear",
    "?": "help",
    "agents": "tasks",
    "sessions": "resume",
    "cd": "cwd",
    "yolo": "allow-all",
    "btw": "ask",
    "config": "settings",
    "env": "customizations",
    "goal": "autopilot",
    "loop": "every",
}

COMMANDS = {
    command.name: command
    for command in (
        SlashCommand(
            "help",
            "[COMMAND]",
            "Show all commands, or how to write one.",
            show_help,
            while_busy=True,
        ),
        SlashCommand(
            "add-dir", "PATH", "Let the tools use another folder.", add_folder, while_busy=True
        ),
        SlashCommand(
            "agent",
            "[NAME | default]",
            "List the agents to work as, or work as one of them.",
            change_agent,
        ),
        SlashCommand(
            "allow-all", "", "Allow everything in this session.", allow_all, while_busy=True
        ),
        SlashCommand(
            "ask",
            "QUESTION",
            "Ask something that does not become part of the conversation.",
            ask,
            while_busy=True,
        ),
        SlashCommand(
            "autopilot",
            "[GOAL]",
            "Switch to autopilot, and work towards the goal until it is reached.",
            enter_mode("autopilot"),
        ),
        SlashCommand(
            "branch",
            "[NAME]",
            "List the branches of git, or switch to one; a new name makes one.",
            publishes("branch"),
            setting="branchSupport.enabled",
        ),
        SlashCommand(
            "changelog", "", "Show what is new in this version.", show_changelog, while_busy=True
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
        SlashCommand(
            "every",
            "[INTERVAL PROMPT | stop NUMBER]",
            "Send a prompt again and again while this session is open; alone: list schedules.",
            lambda invocation: invocation.live.request_schedule("every", invocation.arguments),
            while_busy=True,
        ),
        SlashCommand(
            "after",
            "[INTERVAL PROMPT]",
            "Send a prompt once, later: /after 30m PROMPT.",
            lambda invocation: invocation.live.request_schedule("after", invocation.arguments),
            while_busy=True,
        ),
        SlashCommand("exit", "", "Leave; so does Ctrl-D.", while_busy=True),
        SlashCommand(
            "fleet",
            "[GOAL]",
            "Split a goal among agents in worktrees, and merge their work into a branch.",
            lambda invocation: invocation.live.request_fleet(invocation.arguments),
        ),
        SlashCommand(
            "fork",
            "[NAME]",
            "Go on in a copy of this session; the original is kept.",
            fork,
            while_busy=True,
            setting="forkSessions.enabled",
        ),
        SlashCommand(
            "history",
            "[WORDS]",
            "Search earlier prompts.",
            show_history,
            while_busy=True,
        ),
        SlashCommand(
            "init",
            "[WISH]",
            "Have the model write the instruction file of this repository.",
            is_prompt=True,
        ),
        SlashCommand(
            "instructions",
            "",
            "List the instruction files in use.",
            show_instructions,
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
            enter_mode("plan"),
            setting="planCommand.enabled",
        ),
        SlashCommand("redo", "[preview]", "Reverse the last undo.", redo, values=("preview",)),
        SlashCommand("rename", "NAME", "Give this session a name.", rename, while_busy=True),
        SlashCommand(
            "research",
            "QUESTION",
            "Have the model find something out, with the source of each statement.",
            is_prompt=True,
        ),
        SlashCommand(
            "reset-allowed-tools",
            "",
            "Ask again about what was allowed for this session.",
            reset_permissions,
            while_busy=True,
        ),
        SlashCommand("resume", "[ID]", "Continue an earlier session."),
        SlashCommand(
            "review",
            "[WISH]",
            "Have the model look for defects in the uncommitted changes or the branch.",
            is_prompt=True,
        ),
        SlashCommand("rewind", "", "Return to before an earlier prompt."),
        SlashCommand(
            "rubber-duck",
            "[WISH]",
            "Have the model look for what is wrong with its own plan or work.",
            is_prompt=True,
        ),
        SlashCommand("search", "[WORDS]", "Search this conversation.", while_busy=True),
        SlashCommand(
            "security-review",
            "[WISH]",
            "Have the model look for security holes in the changes.",
            is_prompt=True,
        ),
        SlashCommand(
            "session",
            SESSION,
            "Show the id, name and log of this session, or its plan.",
            show_session,
            while_busy=True,
            values=("info", "plan"),
        ),
        SlashCommand(
            "settings",
            SETTINGS,
            "Show or change your settings.",
            change_settings,
            while_busy=True,
        ),
        SlashCommand(
            "share",
            SHARE,
            "Write this session into a file.",
            share,
            while_busy=True,
            values=("md", "html", "json"),
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
        SlashCommand(
            "usage", "", "Show tokens, cost, time and changed lines.", show_usage, while_busy=True
        ),
    )
}
