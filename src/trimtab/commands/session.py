"""Slash commands that change a session: permissions, folders, its name, MCP servers, undo."""

import os
from typing import TYPE_CHECKING

import msgspec

from trimtab.commands.session_views import describe_permissions, describe_servers, describe_tasks
from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.session import SessionTitleChanged
from trimtab.contracts.text import count
from trimtab.undo.description import describe_plan, summarise_plan
from trimtab.undo.history import UndoRequest

if TYPE_CHECKING:
    from trimtab.commands.table import Invocation

TASKS = "[list | stop ID | send ID TEXT | background ID]"
MCP_ACTIONS = (
    *("list", "enable", "disable", "restart", "reload", "logs", "level"),
    *("prompts", "resources", "read", "complete"),
)
MCP = f"[{'|'.join(MCP_ACTIONS)} …]"
SESSION = "[info | plan]"
PERMISSIONS = "[show | default | allow-all | reset]"
LONGEST_NAME = 100


def require_person(invocation: "Invocation", flag: str) -> None:
    """Refuse to allow more by the text of a prompt: a program may pass on what others wrote."""
    if not invocation.live.controls.attended:
        raise UsageError(f"Only a person in a conversation can do this; start with {flag}.")


async def change_permissions(invocation: "Invocation") -> str:
    """Show the rules, allow everything or go back to them, or forget this session's answers."""
    controls, action = invocation.live.controls, invocation.arguments
    options = controls.options.permissions
    if action in ("", "show"):
        return describe_permissions(invocation.live)
    if action in ("default", "allow-all"):
        everything = action == "allow-all"
        if everything:
            require_person(invocation, "--allow-all")
        controls.set_permissions(
            msgspec.structs.replace(
                options,
                allow_all_tools=everything,
                allow_all_paths=everything,
                allow_all_urls=everything,
            )
        )
        if everything:
            return "Everything is allowed in this session; /permissions default asks again."
        return "Actions that change something are asked about again."
    if action == "reset":
        controls.set_permissions(options)
        return "What was allowed for this session is asked about again."
    raise UsageError(f"Unknown argument {action!r}; write /permissions {PERMISSIONS}.")


async def allow_all(invocation: "Invocation") -> str:
    return await change_permissions(msgspec.structs.replace(invocation, arguments="allow-all"))


async def reset_permissions(invocation: "Invocation") -> str:
    return await change_permissions(msgspec.structs.replace(invocation, arguments="reset"))


async def change_servers(invocation: "Invocation") -> str:
    """Show the MCP servers, change them, or ask one of them something."""
    live, action = invocation.live, invocation.arguments.strip()
    if action == "reload":
        live.controls.reload()
        await live.controls.servers.reload()
    if action in ("", "list", "reload"):
        return describe_servers(live)
    from trimtab.commands.servers import ask_servers

    return await ask_servers(live.controls.servers, invocation.arguments)


async def add_folder(invocation: "Invocation") -> str:
    """Allow the tools to work in another folder as well."""
    controls, given = invocation.live.controls, invocation.arguments
    if not given:
        raise UsageError("There is no folder; write /add-dir PATH.")
    require_person(invocation, "--add-dir PATH")
    path = find_folder(given, controls.options.cwd)
    options = controls.options.permissions
    if path not in options.add_dirs:
        folders = (*options.add_dirs, path)
        controls.set_permissions(msgspec.structs.replace(options, add_dirs=folders))
    return f"The tools may use {path} in this session."


async def list_folders(invocation: "Invocation") -> str:
    options = invocation.live.controls.options
    return "\n".join((f"{options.cwd} (working directory)", *options.permissions.add_dirs))


async def change_folder(invocation: "Invocation") -> str:
    """Show the working directory, or work in another one from the next prompt on."""
    live = invocation.live
    if invocation.arguments:
        require_person(invocation, "-C PATH")
        await live.set_folder(find_folder(invocation.arguments, live.controls.options.cwd))
    return f"The working directory is {live.controls.options.cwd}."


def find_folder(text: str, cwd: str) -> str:
    """Return the absolute path of an existing folder. Raises `UsageError`."""
    path = os.path.normpath(os.path.join(cwd, os.path.expanduser(text.strip("'\""))))
    if not os.path.isdir(path):
        raise UsageError(f"No such folder: {path}; name one that exists.")
    return path


async def change_tasks(invocation: "Invocation") -> str:
    """List the agents and commands, or stop, write to or move one to the background."""
    tasks = invocation.live.tasks
    action, _, rest = invocation.arguments.partition(" ")
    task_id, _, text = rest.strip().partition(" ")
    if action in ("", "list"):
        return describe_tasks(invocation.live)
    if action not in ("stop", "send", "background") or not task_id:
        raise UsageError(f"Unknown arguments {invocation.arguments!r}; write /tasks {TASKS}.")
    if action == "stop":
        if not tasks.stop(task_id):
            raise UsageError(f"{task_id} is not running; list the tasks with /tasks.")
        return f"{task_id} is being stopped."
    if action == "background":
        if not tasks.promote(task_id):
            raise UsageError(f"Nobody waits for {task_id}; list the tasks with /tasks.")
        return f"{task_id} goes on in the background."
    if not text.strip():
        raise UsageError("There is no message; write /tasks send ID TEXT.")
    tasks.send(task_id, text.strip())
    return f"Sent to {task_id}."


async def rename(invocation: "Invocation") -> str:
    """Give the session a name."""
    live, name = invocation.live, " ".join(invocation.arguments.split())
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise UsageError(f"A name has 1 to {LONGEST_NAME} printable characters; /rename NAME.")
    live.folder.update_metadata(name=name, user_named=True)
    live.emit(SessionTitleChanged(title=name))
    return f"The session is now called {name}."


async def show_session(invocation: "Invocation") -> str:
    """Return the facts about the session that a person needs to find it again, or its plan."""
    live = invocation.live
    if invocation.arguments == "plan":
        return live.folder.read_plan() or "This session has no plan yet."
    if invocation.arguments not in ("", "info"):
        raise UsageError(f"Unknown argument {invocation.arguments!r}; write /session {SESSION}.")
    name = live.folder.read_metadata().get("name") or live.projections.title.text
    rows = (
        ("id", live.id),
        ("name", str(name or "none")),
        ("model", live.model or "none"),
        ("mode", live.mode),
        ("folder", live.controls.options.cwd),
        ("log", f"{live.folder.events} ({count(live.event_count, 'event')})"),
        ("plan", live.folder.plan if live.folder.read_plan() else "none"),
        ("resume", f"trimtab --resume={live.id}"),
    )
    return "\n".join(f"{name:<8}{value}" for name, value in rows)


async def undo(invocation: "Invocation") -> str:
    return undo_or_redo(invocation, "undo")


async def redo(invocation: "Invocation") -> str:
    return undo_or_redo(invocation, "redo")


def undo_or_redo(invocation: "Invocation", action: str) -> str:
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


async def compact(invocation: "Invocation") -> str:
    compaction = invocation.live.controls.agent.parts.compaction
    if len(invocation.run.session.conversation.messages) < 2:
        return "There is nothing to summarise yet."
    outcome = await compaction.compact(invocation.run, "manual", invocation.arguments)
    done = "summarised" if outcome.error is None else "shortened without a summary"
    return (
        f"{count(outcome.messages_removed, 'message')} {done}: the conversation went from "
        f"{outcome.tokens_before:,} to {count(outcome.tokens_after, 'token')}."
    )
