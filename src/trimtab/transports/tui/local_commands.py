"""Commands of the interface: those it answers itself, and those it passes to the session."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from prompt_toolkit.enums import EditingMode

from trimtab.commands.agent_choice import list_agents
from trimtab.commands.choices import list_settings
from trimtab.commands.session_copies import fork_session
from trimtab.commands.table import ALIASES, COMMANDS, find_command, get_command, list_usages
from trimtab.commands.table import list_commands as offered_commands
from trimtab.config.edit import change_field
from trimtab.contracts.errors import UsageError
from trimtab.contracts.run import Measured
from trimtab.session.store import SessionStore
from trimtab.transports.tui.cells import Line, Span
from trimtab.transports.tui.completion import CommandRow
from trimtab.transports.tui.diff import count_lines, render_diff
from trimtab.transports.tui.other_programs import copy_text
from trimtab.transports.tui.theme import THEMES

if TYPE_CHECKING:
    from trimtab.transports.tui.app import Tui

_NAME = re.compile(r"/([\w?:.-]+)(?:\s+(.*))?", re.DOTALL)
_THROUGH_THE_QUEUE = {"compact"}
"""Commands that take long: they go through the session's queue, so that Esc stops them."""

_PART = re.compile(r"  +[\d,]+  (?:system|tool): ")
LARGEST = 5
"""Parts of the context that are shown; Ctrl-O opens all."""

LocalCommand = Callable[["Tui", str], Awaitable[None]]


def list_commands(tui: "Tui") -> Sequence[CommandRow]:
    """Return everything that can be typed as `/name`."""
    live = tui.live
    rows = [
        CommandRow(
            name=command.name,
            arguments=command.arguments,
            help=command.help,
            while_busy=command.while_busy,
            values=command.values,
            aliases=tuple(alias for alias, name in ALIASES.items() if name == command.name),
            find_values=find_values(tui, command.name),
        )
        for command in (COMMANDS.values() if live is None else offered_commands(live))
    ]
    custom = live.controls.setup.customizations if live is not None else None
    if custom is not None:
        rows += [
            CommandRow(name=skill.name, help=skill.description, source="skill")
            for skill in custom.skills.active
            if skill.user_invocable and skill.name not in {row.name for row in rows}
        ]
    return rows


def find_values(tui: "Tui", name: str) -> Callable[[], Sequence[str]] | None:
    """Return a function that finds the arguments of a command; None if its row has them."""
    live = tui.live
    if live is None or name not in ("agent", "help", "settings", "theme"):
        return None
    finders: dict[str, Callable[[], Sequence[str]]] = {
        "agent": lambda: ["default", *(agent.name for agent in list_agents(live))],
        "help": lambda: [command.name for command in offered_commands(live)],
        "settings": lambda: list(list_settings(live)),
        "theme": lambda: list(THEMES),
    }
    return finders[name]


def handles(tui: "Tui", text: str) -> bool:
    """Return True if the interface runs this text itself, False if it is a prompt."""
    match = _NAME.fullmatch(text.strip())
    if match is None or tui.live is None:
        return False
    command = get_command(tui.live, match[1].lower())
    if command is None or command.is_prompt or command.name in _THROUGH_THE_QUEUE:
        return False
    if command.name == "queue" and (match[2] or "").startswith("send"):
        return tui.busy  # an idle session must be woken to send them
    if not tui.busy or command.while_busy:
        return True
    waits = command.handler is not None and (command.name not in LOCAL or bool(match[2]))
    return not waits


async def run(tui: "Tui", text: str) -> None:
    """Run a command and show its answer."""
    assert tui.live is not None
    found = find_command(tui.live, text)
    if found is None:
        raise UsageError(f"Unknown command {text.split(maxsplit=1)[0]}; see /help.")
    command, arguments = found
    if tui.busy and not command.while_busy:
        raise UsageError(f"/{command.name} is not possible while the agent works; Esc stops it.")
    tui.transcript.blank()
    if arguments or command.name not in PANELS:  # a panel that is closed again leaves no trace
        tui.transcript.say(f"> {text.strip()}", "person")
    if (local := LOCAL.get(command.name)) is not None:
        await local(tui, arguments)
    else:
        answer = await tui.live.run_command(text)
        if answer:
            tui.transcript.say(answer)
    tui.transcript.blank()
    tui.follow_folder()
    tui.status.refresh()


def say_kept(tui: "Tui", text: str, session_id: str) -> None:
    """Say how to come back to another session, with the command on a line of its own."""
    tui.transcript.say(f"{text}\n  trimtab --resume={session_id}", "dim")


async def clear(tui: "Tui", _: str) -> None:
    """Begin a new session."""
    old = tui.live
    assert old is not None
    if await tui.open(tui.opening.new):
        say_kept(tui, "The old session is kept:", old.id)


async def worktree(tui: "Tui", name: str) -> None:
    """Begin a new session in a git worktree of its own."""
    old = tui.live
    assert old is not None
    if await tui.open(lambda client: tui.opening.isolated(client, name)):
        say_kept(tui, "The old session is kept:", old.id)


async def fork(tui: "Tui", name: str) -> None:
    """Go on in a copy of the session; while the agent works, stay with the original."""
    old = tui.live
    assert old is not None
    if tui.busy:
        tui.transcript.say(await old.run_command(f"/fork {name}".rstrip()) or "")
        return
    copy = await fork_session(old, name or None)
    if await tui.open(lambda client: tui.opening.resume(client, copy), past=False):
        say_kept(tui, "This is a copy; the original is kept:", old.id)


async def ask(tui: "Tui", question: str) -> None:
    """Show the answer to a question beside the conversation."""
    assert tui.live is not None
    tui.say_briefly("Asking beside the conversation …")
    tui.transcript.add_markdown(await tui.live.run_command(f"/ask {question}") or "")


async def search(tui: "Tui", words: str) -> None:
    """Search this conversation."""
    from trimtab.transports.tui.conversation_search import conversation_panel

    tui.panel = await asyncio.to_thread(conversation_panel, tui)
    if tui.panel is not None and words:
        tui.panel.type(words)


async def settings(tui: "Tui", arguments: str) -> None:
    """Open the settings; with arguments as in plain lines."""
    from trimtab.transports.tui.setup_panels import settings_panel

    if not await answered(tui, "settings", arguments):
        tui.panel = settings_panel(tui)


async def agent(tui: "Tui", arguments: str) -> None:
    """Choose the agent to work as; with an argument as in plain lines."""
    from trimtab.transports.tui.setup_panels import agents_panel

    if not await answered(tui, "agent", arguments):
        tui.panel = agents_panel(tui)


async def session(tui: "Tui", arguments: str) -> None:
    """Show the facts of the session, or its plan as it is rendered."""
    assert tui.live is not None
    answer = await tui.live.run_command(f"/session {arguments}".rstrip()) or ""
    if arguments == "plan":
        tui.transcript.add_markdown(answer)
    else:
        tui.transcript.say(answer)


async def leave(tui: "Tui", _: str) -> None:
    tui.leave()


async def copy(tui: "Tui", _: str) -> None:
    """Copy the last answer to the clipboard through the terminal."""
    assert tui.live is not None
    answer = tui.live.answer
    if not answer:
        tui.transcript.say("There is no answer to copy yet.", "dim")
        return
    copy_text(tui, answer)
    tui.transcript.say(f"Copied the last answer ({len(answer):,} characters).", "dim")


async def rewind(tui: "Tui", _: str) -> None:
    tui.actions.rewind()


async def show_help(tui: "Tui", arguments: str) -> None:
    """Show all commands in two columns, or how to write one."""
    assert tui.live is not None
    if not await answered(tui, "help", arguments):
        tui.transcript.say_pairs(list_usages(tui.live))


async def history(tui: "Tui", arguments: str) -> None:
    """Search the prompts of all sessions."""
    from trimtab.transports.tui.panels import search_panel

    tui.panel = search_panel(tui)
    tui.panel.type(arguments)


async def resume(tui: "Tui", arguments: str) -> None:
    """Continue the session with an id or name, or choose one."""
    if arguments:
        session_id = SessionStore(tui.terminal.home).find(arguments, cwd=tui.terminal.cwd)
        await tui.open(lambda client: tui.opening.resume(client, session_id))
        return
    from trimtab.transports.tui.session_panels import sessions_panel

    tui.panel = await asyncio.to_thread(sessions_panel, tui)


async def model(tui: "Tui", arguments: str) -> None:
    """Switch to a model, or choose one of those that are found."""
    if await answered(tui, "model", arguments):
        return
    tui.say_briefly("Looking for models …")
    from trimtab.transports.tui.session_panels import model_panel

    tui.panel = await model_panel(tui)


async def theme(tui: "Tui", arguments: str) -> None:
    """Use other colours, and save the choice."""
    from trimtab.transports.tui.session_panels import theme_panel, use_theme

    if not arguments:
        tui.panel = theme_panel(tui)
    else:
        use_theme(tui, arguments)


async def vim(tui: "Tui", _: str) -> None:
    """Switch between vi and emacs keys, and save the choice."""
    is_vi = tui.app.editing_mode == EditingMode.VI
    tui.app.editing_mode = EditingMode.EMACS if is_vi else EditingMode.VI
    change_field(tui.terminal.home.settings, "editorMode", "emacs" if is_vi else "vi")
    tui.transcript.say(f"The keys of {'emacs' if is_vi else 'vi'} are in use.", "dim")


async def context(tui: "Tui", _: str) -> None:
    """Show the use of the context window as a bar, and by part."""
    assert tui.live is not None
    columns, _rows = tui.screen.size
    measured, limit = tui.live.context
    if measured is not None:
        tui.transcript.add_lines([context_bar(measured, limit, columns - 1)])
    text = await tui.live.run_command("/context") or ""
    lines = text.split("\n")
    parts = [line for line in lines if _PART.match(line)]
    tui.transcript.say("\n".join(line for line in lines if line not in parts))
    largest = sorted(parts, key=lambda line: -int(line.split()[0].replace(",", "")))
    tui.transcript.fold("context", text)
    tui.transcript.say("\n".join(largest[:LARGEST]))
    if len(parts) > LARGEST:
        tui.transcript.say(f"  … {len(parts) - LARGEST} smaller parts (Ctrl-O)", "dim")


def context_bar(measured: Measured, limit: int, columns: int) -> Line:
    """Return a bar of the context window: a letter and a colour for each part."""
    size = max(10, min(columns, 72))
    parts = (
        ("accent", "S", measured.system),
        ("keyword", "T", measured.tools),
        ("success", "C", measured.conversation),
    )
    spans: list[Span] = []
    used = 0
    for style, letter, tokens in parts:
        cells = min(size - used, -(-tokens * size // limit) if tokens else 0)
        spans.append((style, letter * cells))
        used += cells
    return (*spans, ("dim", "·" * (size - used)))


async def diff(tui: "Tui", _: str) -> None:
    """Show what the session changed in files."""
    assert tui.live is not None
    text = await tui.live.run_command("/diff") or ""
    if not text.startswith("diff --git"):
        tui.transcript.say(text)
        return
    for piece in re.split(r"(?m)^(?=diff --git )", text):
        if piece:
            name = piece.split("\n", 1)[0].rpartition(" b/")[2]
            added, removed = count_lines(piece)
            tui.transcript.say(f"{name}  +{added} -{removed}", "heading")
            tui.transcript.add_lines(render_diff(piece))


async def queue(tui: "Tui", arguments: str) -> None:
    """Open the waiting prompts; with arguments as in plain lines."""
    from trimtab.transports.tui.work_panels import queue_panel

    if not await answered(tui, "queue", arguments):
        tui.panel = queue_panel(tui)


async def tasks(tui: "Tui", arguments: str) -> None:
    """Open the agents and commands; with arguments as in plain lines."""
    from trimtab.transports.tui.work_panels import tasks_panel

    if not await answered(tui, "tasks", arguments):
        tui.panel = tasks_panel(tui)


async def mcp(tui: "Tui", arguments: str) -> None:
    """Open the MCP servers; with arguments as in plain lines."""
    from trimtab.transports.tui.setup_panels import servers_panel

    if not await answered(tui, "mcp", arguments):
        tui.panel = await servers_panel(tui)


async def skills(tui: "Tui", _: str) -> None:
    from trimtab.transports.tui.setup_panels import skills_panel

    tui.panel = skills_panel(tui)


async def permissions(tui: "Tui", arguments: str) -> None:
    """Open the permission rules; with arguments as in plain lines."""
    from trimtab.transports.tui.setup_panels import permissions_panel

    if not await answered(tui, "permissions", arguments):
        tui.panel = permissions_panel(tui)


async def undo(tui: "Tui", arguments: str) -> None:
    """Open the turns that changed files; with arguments as in plain lines."""
    from trimtab.transports.tui.setup_panels import undo_panel

    if not await answered(tui, "undo", arguments):
        tui.panel = undo_panel(tui)


async def answered(tui: "Tui", name: str, arguments: str) -> bool:
    """Run a command with arguments and show its answer; return False if there are none."""
    if not arguments:
        return False
    assert tui.live is not None
    tui.transcript.say(await tui.live.run_command(f"/{name} {arguments}") or "")
    return True


LOCAL: dict[str, LocalCommand] = {
    "agent": agent,
    "ask": ask,
    "clear": clear,
    "context": context,
    "copy": copy,
    "diff": diff,
    "exit": leave,
    "fork": fork,
    "help": show_help,
    "history": history,
    "mcp": mcp,
    "model": model,
    "permissions": permissions,
    "queue": queue,
    "resume": resume,
    "rewind": rewind,
    "search": search,
    "session": session,
    "settings": settings,
    "skills": skills,
    "tasks": tasks,
    "theme": theme,
    "undo": undo,
    "vim": vim,
    "worktree": worktree,
}
PANELS = frozenset(
    (
        *("agent", "history", "mcp", "model", "permissions", "queue", "resume", "rewind"),
        *("search", "settings", "skills", "tasks", "theme", "undo"),
    )
)
"""Commands that open a panel if they have no arguments."""
