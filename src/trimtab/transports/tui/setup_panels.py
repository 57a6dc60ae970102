"""Panels over what the session works with: servers, skills, agents, settings, rules, undo."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trimtab.commands.agent_choice import list_agents
from trimtab.commands.choices import list_settings, show_setting
from trimtab.commands.session_views import list_rules
from trimtab.contracts.errors import UsageError
from trimtab.contracts.text import count
from trimtab.transports.tui.panels import Key, Panel, Row, find_in, local_time
from trimtab.transports.tui.view import MenuItem
from trimtab.undo.rewind import list_effects, list_points

if TYPE_CHECKING:
    from trimtab.transports.tui.app import Tui


async def say_answer(tui: "Tui", command: str) -> None:
    """Run a command of the session and say what it answers."""
    assert tui.live is not None
    tui.transcript.say(await tui.live.run_command(command) or "", "dim")


async def servers_panel(tui: "Tui") -> Panel | None:
    """Return the MCP servers; None with a remark if none is configured."""
    live = tui.live
    assert live is not None
    await live.controls.servers.start()
    if not live.controls.servers.describe():
        await say_answer(tui, "/mcp")
        return None

    def find(query: str) -> Sequence[Row]:
        rows = []
        for server in live.controls.servers.describe():
            facts = f"{server['status']} · {server['transport']} · {server['source']}"
            item = MenuItem(str(server["name"]), facts, detail=str(server.get("error") or ""))
            rows.append(Row(item, server["name"]))
        return find_in(rows)(query)

    def act(action: str) -> Key:
        return Key(f"{action}s", lambda name: run(f"/mcp {action} {name}"))

    def run(command: str) -> None:
        tui.spawn(say_answer(tui, command))

    async def show_tools(name: str) -> None:
        server = live.controls.servers.find(name)
        await server.settled(server.wait_left)
        if server.status != "connected":
            why = server.error or f"its status is {server.status}"
            raise UsageError(
                f"{name} is not connected: {why}; correct its entry, then /mcp reload."
            )
        tui.transcript.say(f"{name}: {count(len(server.listing.tools), 'tool')}", "heading")
        tui.transcript.say_pairs(
            [(tool.name, tool.description or "") for tool in server.listing.tools]
        )

    def choose(name: str) -> None:
        tui.panel = None
        tui.spawn(show_tools(name))

    panel = Panel("MCP servers", find, choose)
    panel.chooses, panel.changes = "lists its tools", True
    panel.keys = {"e": act("enable"), "d": act("disable"), "r": act("restart")}
    return panel


def skills_panel(tui: "Tui") -> Panel | None:
    """Return the skills and prompt files; None if there are none."""
    live = tui.live
    custom = live.controls.setup.customizations if live is not None else None
    skills = custom.skills.active if custom is not None else ()
    if not skills:
        tui.transcript.say("No skills are loaded.", "dim")
        return None
    rows = [
        Row(
            MenuItem(
                f"/{skill.name}" if skill.user_invocable else skill.name,
                skill.description if skill.user_invocable else f"(model only) {skill.description}",
                detail=skill.description,
            ),
            skill,
        )
        for skill in skills
    ]

    def choose(skill: object) -> None:
        name, callable_ = getattr(skill, "name", ""), getattr(skill, "user_invocable", False)
        tui.panel = None
        if not callable_:
            tui.say_briefly(f"Only the model can call {name}.")
            return
        tui.editor.remember()
        tui.editor.set(f"/{name} ")

    return Panel("Skills", find_in(rows), choose)


def settings_panel(tui: "Tui") -> Panel:
    """Return the settings: those that are set first; Enter begins the command that changes one."""
    live = tui.live
    assert live is not None
    found = sorted(list_settings(live).items(), key=lambda item: item[1] is None)
    rows = [Row(MenuItem(name, show_setting(value)), name) for name, value in found]

    def choose(name: str) -> None:
        tui.panel = None
        tui.editor.remember()
        tui.editor.set(f"/settings {name} ")
        tui.say_briefly(f"Type the new value of {name}, or default to remove it.")

    panel = Panel("Settings", find_in(rows), choose)
    panel.chooses = "changes it"
    return panel


def agents_panel(tui: "Tui") -> Panel:
    """Return the agents that the session can work as."""
    live = tui.live
    assert live is not None
    default = Row(MenuItem("default", "Trimtab itself"), "default")
    agents = (
        Row(MenuItem(agent.name, agent.description, detail=agent.description), agent.name)
        for agent in list_agents(live)
    )

    def choose(name: str) -> None:
        tui.panel = None
        tui.spawn(say_answer(tui, f"/agent {name}"))

    return Panel("Work as which agent?", find_in([default, *agents]), choose)


def permissions_panel(tui: "Tui") -> Panel:
    """Return the rules that decide about actions, and keys that change how much is asked."""
    live = tui.live
    assert live is not None

    def find(query: str) -> Sequence[Row]:
        rows = [
            Row(MenuItem(f"{verdict:<6}{rule}", f"({source})"), (verdict, rule))
            for verdict, rule, source in list_rules(live)
        ]
        nothing = MenuItem("No rules: what changes something is asked about.", disabled=True)
        return find_in(rows or [Row(nothing, None)])(query)

    def run(command: str) -> None:
        tui.panel = None
        tui.spawn(say_answer(tui, command))

    def close(_: object) -> None:
        tui.panel = None

    panel = Panel("Permissions", find, close)
    panel.chooses = "closes"
    panel.keys = {
        "a": Key("allows everything", lambda _: run("/permissions allow-all")),
        "d": Key("asks by the rules", lambda _: run("/permissions default")),
        "r": Key("forgets this session's answers", lambda _: run("/permissions reset")),
    }
    return panel


def undo_panel(tui: "Tui") -> Panel | None:
    """Return the turns that changed files; None with a remark if none did."""
    live = tui.live
    assert live is not None
    effects = list_effects(live.folder, live.recorder.store)
    points = {point.turn: point for point in list_points(live.folder.events)}
    rows = []
    for turn in sorted(effects, reverse=True):
        if not effects[turn]:
            continue
        added = sum(effect.lines_added for effect in effects[turn])
        removed = sum(effect.lines_removed for effect in effects[turn])
        paths = ", ".join(effect.path for effect in effects[turn])
        point = points.get(turn)
        label = " ".join(point.text.split())[:100] if point else f"turn {turn}"
        when = f"{local_time(point.timestamp)}, " if point else ""
        files = f"{when}{count(len(effects[turn]), 'file')} +{added} -{removed}"
        rows.append(Row(MenuItem(label, files, detail=paths), turn))
    if not rows:
        tui.transcript.say("This session has changed no files.", "dim")
        return None

    def preview(turn: int) -> None:
        tui.panel = None
        tui.spawn(say_answer(tui, f"/undo preview {turn}"))

    def choose(turn: int) -> None:
        tui.panel = None
        tui.spawn(say_answer(tui, f"/undo {turn}"))

    panel = Panel("Undo the file changes of which prompt?", find_in(rows), choose)
    panel.chooses = "undoes them"
    panel.keys = {"p": Key("previews", preview)}
    return panel
