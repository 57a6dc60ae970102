"""Panels for waiting prompts, and for the agents and commands of the session."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from trimtab.commands.session_views import describe_spending
from trimtab.contracts.events.codec import decode
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.own import PromptQueued
from trimtab.contracts.run import Prompt
from trimtab.contracts.text import neutralise
from trimtab.host.agent_lines import AgentLines
from trimtab.host.requests import handle_request
from trimtab.runtime.live import LiveSession
from trimtab.transports.tui.other_programs import page
from trimtab.transports.tui.panels import Key, Panel, Row, find_in
from trimtab.transports.tui.transcript import describe_seconds
from trimtab.transports.tui.view import MenuItem

if TYPE_CHECKING:
    from trimtab.transports.tui.app import Tui

TAIL_BYTES = 1 << 20
"""Bytes of a command's output that its tail shows at most."""
SILENT = 5.0
"""Seconds without output after which the row of an agent says so."""
LONGEST_LABEL = 36
"""Characters of a task in its row; the rest of the row is for its state and its budget."""
_ACTIONS = {
    "edit": "edit it: take it back into the editor",
    "now": "send it now: the agent reads it next",
    "first": "move it to the front of the queue",
    "remove": "remove it",
}


def queue_panel(tui: "Tui") -> Panel | None:
    """Return the list of waiting prompts; None with a remark if there are none."""
    live = tui.live
    waiting = [*live.inbox.held, *live.inbox.pending] if live is not None else []
    if not waiting:
        tui.transcript.say("No prompts are waiting.", "dim")
        return None
    rows = []
    for prompt in waiting:
        label = " ".join((prompt.display or prompt.text).split())[:200]
        remark = "steers" if prompt.mode == "immediate" else "queued"
        rows.append(Row(MenuItem(label, remark), prompt))

    def choose(prompt: PromptQueued) -> None:
        actions = [Row(MenuItem(text), name) for name, text in _ACTIONS.items()]
        panel = Panel(
            "Do what with it?", find_in(actions), lambda action: change_prompt(tui, prompt, action)
        )
        panel.digits = True
        tui.panel = panel
        tui.request_frame()

    return Panel("Waiting prompts", find_in(rows), choose)


def change_prompt(tui: "Tui", queued: PromptQueued, action: str) -> None:
    """Edit, send, move or remove a prompt, unless the agent has begun to answer it."""
    tui.panel = None
    live = tui.live
    if live is None or not live.inbox.withdraw(queued.message_id, action):
        tui.say_briefly("The agent is answering it already.")
        return
    text = queued.display or queued.text
    prompt = Prompt(
        text=queued.text,
        display=queued.display,
        attachments=tuple(queued.attachments or ()),
        mode="immediate" if action == "now" else "enqueue",
    )
    if action == "edit":
        tui.editor.remember()
        edit_again(tui, queued)
    elif action == "now":
        handle_request(live, prompt)
    elif action == "first":
        live.inbox.put(prompt, front=True)
    else:
        tui.history.add(text, list_images(queued))
        tui.say_briefly("Removed; it is in the history.")
    tui.request_frame()


def edit_again(tui: "Tui", prompt: PromptQueued) -> None:
    """Put a prompt back into the editor, with the images that were attached to it."""
    tui.editor.load(prompt.display or prompt.text, list_images(prompt))


def list_images(prompt: PromptQueued) -> list[str]:
    """Return the paths of the files that are attached to a prompt."""
    return [str(item["path"]) for item in prompt.attachments or () if item.get("path")]


def tasks_panel(tui: "Tui") -> Panel | None:
    """Return the agents and commands of the session; None with a remark if there are none."""
    live = tui.live
    if live is None or not live.tasks.describe():
        tui.transcript.say("No agents or commands are running.", "dim")
        return None

    def find(query: str) -> Sequence[Row]:
        return find_in(list_task_rows(tui, live))(query)

    def open_tail(task_id: str) -> None:
        tui.panel = None
        tui.spawn(page(tui, [(task_id, read_tail(live, task_id))]))

    def write_to(task_id: str) -> None:
        tui.panel = None
        tui.editor.remember()
        tui.editor.set(f"/tasks send {task_id} ")

    def stop(task_id: str) -> None:
        stopped = live.tasks.stop(task_id)
        tui.say_briefly("It is being stopped." if stopped else "It does not run.")

    def promote(task_id: str) -> None:
        promoted = live.tasks.promote(task_id)
        tui.say_briefly(
            "It goes on in the background." if promoted else "Nobody waits for it already."
        )

    def remove(task_id: str) -> None:
        removed = live.tasks.remove(task_id)
        tui.say_briefly("It is removed." if removed else "It still runs; x stops it.")

    panel = Panel("Tasks", find, open_tail)
    panel.chooses, panel.changes = "opens", True
    panel.keys = {
        "s": Key("writes", write_to),
        "x": Key("stops", stop),
        "b": Key("to the background", promote),
        "r": Key("removes", remove),
    }
    return panel


def list_background(tui: "Tui") -> list[str]:
    """Return the names of the agents and commands that work in the background."""
    live = tui.live
    if live is None or not live.has_background_work:
        return []
    agents = [agent.name for agent in tui.transcript.agents.values()]
    commands = [" ".join(shell.command.split())[:40] for shell in live.background_commands]
    return [neutralise(name) for name in (*agents, *commands, *live.jobs)]


def list_task_rows(tui: "Tui", live: LiveSession) -> list[Row]:
    """Return a row for each agent and command, below the agent that started it."""
    tasks = live.tasks.describe()
    rows: list[Row] = []

    def add(caller: str, depth: int) -> None:
        for task in tasks:
            if (task.get("callerId") or task.get("agentId") or live.id) == caller and depth < 9:
                rows.append(_task_row(tui, task, depth))
                if task["id"] != caller:
                    add(task["id"], depth + 1)

    add(live.id, 0)
    shown = {row.value for row in rows}
    rest = [task for task in tasks if task["id"] not in shown]
    return [*rows, *(_task_row(tui, task, 0) for task in rest)]


def _task_row(tui: "Tui", task: JsonObject, depth: int) -> Row:
    task_id = task["id"]
    state = "interrupted" if task.get("interrupted") else str(task.get("status", ""))
    facts = [state]
    if state == "running":
        facts.append(describe_seconds(seconds_since(task.get("startedAt"))))
    if spent := describe_spending(task):
        facts.append(spent)
    seen = tui.transcript.agent_seen.get(task_id)
    if state == "running" and seen is not None and time.monotonic() - seen >= SILENT:
        facts.append(f"silent for {describe_seconds(time.monotonic() - seen)}")
    if task["type"] == "shell":
        label = f"$ {task.get('command', '')}"
    else:
        label = f"{task.get('displayName') or task.get('agentType')}: {task.get('description', '')}"
    tail = tui.transcript.agent_activity.get(task_id, "")
    assert tui.live is not None
    if task["type"] == "shell":
        output = (tui.live.tasks.progress(task_id) or {}).get("recentOutput", "")
        tail = output.rstrip().rsplit("\n", 1)[-1]
    elif not tail:
        tail = str(task.get("latestResponse") or task.get("prompt") or "")
    label = " ".join(label.split())
    label = f"{'  ' * depth}{label}"
    item = MenuItem(label[:LONGEST_LABEL], " · ".join(facts), detail=tail)
    return Row(item, task_id)


def seconds_since(stamp: object) -> float:
    """Return the seconds since a timestamp; 0 if it cannot be read."""
    try:
        return (datetime.now(UTC) - datetime.fromisoformat(str(stamp))).total_seconds()
    except (ValueError, TypeError):
        return 0.0


def read_tail(live: LiveSession, task_id: str) -> str:
    """Return what an agent did, or what a command printed."""
    task = live.tasks.find(task_id)
    if task is not None and task["type"] == "shell":
        return neutralise(live.tasks.read_output(task_id, -TAIL_BYTES, TAIL_BYTES)[0])
    lines = AgentLines()
    events = (decode(bytes(raw)) for raw in live.read_events())
    return "\n".join(
        line for event in events if event.agent_id == task_id for line in lines.read(event)
    )
