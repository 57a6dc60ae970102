"""Panels that choose a session, a model or a theme."""

from typing import TYPE_CHECKING

from trimtab.config.edit import change_field
from trimtab.contracts.errors import UsageError
from trimtab.host.session_list import list_resumable
from trimtab.models.sources import list_windows
from trimtab.transports.tui.first_model import list_models
from trimtab.transports.tui.panels import Panel, Row, find_in, local_time
from trimtab.transports.tui.theme import THEMES, choose_theme
from trimtab.transports.tui.view import MenuItem

if TYPE_CHECKING:
    from trimtab.transports.tui.app import Tui


def sessions_panel(tui: "Tui") -> Panel:
    """Return the picker of earlier sessions, the one used last first."""
    here = tui.terminal.cwd
    own = tui.live.id if tui.live is not None else ""
    rows = []
    for summary in list_resumable(tui.terminal.home, own):
        name = summary.name or summary.title
        place = "" if summary.cwd == here else f", {summary.cwd}"
        used = " (in use)" if summary.in_use else ""
        remark = f"{local_time(summary.updated_at)}{place}{used}"
        detail = f"{summary.id} in {summary.cwd}"
        item = MenuItem(name[:100], remark, disabled=summary.in_use, detail=detail)
        rows.append(Row(item, summary.id))

    def choose(session_id: str) -> None:
        tui.panel = None
        tui.spawn(tui.open(lambda client: tui.opening.resume(client, session_id)))

    return Panel("Continue which session?", find_in(rows), choose)


async def model_panel(tui: "Tui") -> Panel:
    """Return the picker of the models that are found."""
    sources = await tui.models.find_sources(again=True)
    rows = [row for source in sources for row in list_models(source)]
    if tui.live is not None:
        tui.live.controls.learn_windows(list_windows(sources))
        tui.status.refresh()

    async def switch(name: str) -> None:
        assert tui.live is not None
        answer = await tui.live.run_command(f"/model {name}")
        tui.transcript.say(answer or "", "dim")

    def choose(name: str) -> None:
        tui.panel = None
        tui.spawn(switch(name))

    return Panel("Use which model?", find_in(rows), choose)


ABOUT_THEMES = {
    "auto": "the 16 colours of your terminal's own scheme",
    "dark": "for a dark background",
    "light": "for a light background",
    "high-contrast": "for a black background",
    "none": "no colours",
}


def theme_panel(tui: "Tui") -> Panel:
    """Return the picker of themes."""

    def choose(name: str) -> None:
        tui.panel = None
        use_theme(tui, name)

    rows = [Row(MenuItem(name, about), name) for name, about in ABOUT_THEMES.items()]
    panel = Panel("Use which colours?", find_in(rows), choose)
    panel.digits = True
    return panel


def use_theme(tui: "Tui", name: str) -> None:
    """Use a theme from now on, and save it."""
    if name not in THEMES:
        raise UsageError(f"Unknown theme {name!r}; use one of {', '.join(THEMES)}.")
    tui.painter.theme = tui.preferences.adapt(choose_theme(name, tui.terminal.env))
    change_field(tui.terminal.home.settings, "theme", name)
    tui.transcript.say(f"The theme is {name}.", "dim")
    tui.request_frame()
