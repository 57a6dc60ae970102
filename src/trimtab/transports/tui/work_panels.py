"""Panels for waiting prompts and running sub-agents."""

from typing import TYPE_CHECKING

from trimtab.contracts.events.own import PromptQueued
from trimtab.contracts.run import Prompt
from trimtab.host.requests import handle_request
from trimtab.transports.tui.panels import Panel, Row, find_in
from trimtab.transports.tui.view import MenuItem

if TYPE_CHECKING:
    from trimtab.transports.tui.app import Tui

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
        tui.panel = Panel(
            "Do what with it?", find_in(actions), lambda action: change_prompt(tui, prompt, action)
        )
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
        tui.history.add(tui.editor.expanded)
        edit_again(tui, queued)
    elif action == "now":
        handle_request(live, prompt)
    elif action == "first":
        live.inbox.put(prompt, front=True)
    else:
        tui.history.add(text)
        tui.say_briefly("Removed; it is in the history.")
    tui.request_frame()


def edit_again(tui: "Tui", prompt: PromptQueued) -> None:
    """Put a prompt back into the editor, with the images that were attached to it."""
    attached = [str(item["path"]) for item in prompt.attachments or () if item.get("path")]
    tui.editor.load(prompt.display or prompt.text, attached)


def tasks_panel(tui: "Tui") -> Panel | None:
    """Return the list of running sub-agents, to stop one; None with a remark if none runs."""
    live = tui.live
    agents = tui.transcript.agents
    if live is None or not agents:
        tui.transcript.say("No sub-agents are running.", "dim")
        return None
    rows = [
        Row(MenuItem(agent.name, tui.transcript.agent_activity.get(key, agent.description)), key)
        for key, agent in agents.items()
    ]

    def stop(agent_id: str) -> None:
        tui.panel = None
        stopped = live.tasks.stop(agent_id)
        tui.say_briefly("It is being stopped." if stopped else "It has ended already.")

    return Panel("Stop which sub-agent?", find_in(rows), stop)
