"""Panels in the live rows: a list that is searched by typing, chosen with Enter, closed by Esc."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.contracts.text import count, neutralise
from trimtab.transports.tui.cells import Line
from trimtab.transports.tui.view import Menu, MenuItem
from trimtab.undo.rewind import Mode, Point, list_effects, list_points

if TYPE_CHECKING:
    from trimtab.transports.tui.app import Tui


class Row(msgspec.Struct, frozen=True):
    """An entry of a panel; `value` is given to the panel's `on_choose`."""

    item: MenuItem
    value: Any


class Panel:
    """A list to choose from. `find` returns the rows for what was typed."""

    def __init__(
        self,
        title: str,
        find: Callable[[str], Sequence[Row]],
        on_choose: Callable[[Any], None],
        *,
        on_tab: Callable[[], str] | None = None,
    ) -> None:
        self.title = title
        self.query = ""
        self._find = find
        self._on_choose = on_choose
        self._on_tab = on_tab
        self._rows = list(find(""))
        self._marked = 0
        self.on_close: Callable[[], None] = lambda: None
        """Called when the panel is closed without a choice."""

    @property
    def heading(self) -> tuple[Line, ...]:
        """The title, with what the keys do."""
        return ((("accent bold", self.title), ("dim", "  Enter chooses, Esc closes")),)

    @property
    def menu(self) -> Menu:
        rows = tuple(row.item for row in self._rows)
        return Menu(rows or (MenuItem("nothing found", disabled=True),), self._marked)

    def type(self, text: str) -> None:
        """Add to the words searched for."""
        self._search(self.query + text)

    def erase(self) -> None:
        self._search(self.query[:-1])

    def refresh(self) -> None:
        """Find the rows again, because their source has changed."""
        self._search(self.query)

    def move(self, step: int) -> None:
        """Move the mark."""
        if self._rows:
            self._marked = (self._marked + step) % len(self._rows)

    def choose(self) -> None:
        """Choose the marked row, if there is one."""
        if self._rows:
            self._on_choose(self._rows[self._marked].value)

    def press_tab(self) -> None:
        if self._on_tab is not None:
            self.title = self._on_tab()
            self.refresh()

    def _search(self, query: str) -> None:
        self.query = query
        self._rows = list(self._find(query))
        self._marked = 0


def find_in(rows: Sequence[Row]) -> Callable[[str], Sequence[Row]]:
    """Return a search over fixed rows: every word must occur in a row."""

    def find(query: str) -> Sequence[Row]:
        words = query.lower().split()
        return [
            row
            for row in rows
            if all(word in f"{row.item.label} {row.item.remark}".lower() for word in words)
        ]

    return find


def search_panel(tui: "Tui") -> Panel:
    """Return the search over the prompts of all sessions."""
    here = [False]

    def find(query: str) -> Sequence[Row]:
        entries = tui.history.search(query, here=here[0])[:200]
        return [
            Row(MenuItem(" ".join(entry.text.split())[:300], _short(entry.cwd)), entry.text)
            for entry in entries
            if not entry.text.startswith("/history")
        ]

    def choose(text: str) -> None:
        tui.panel = None
        tui.editor.set(text)

    def narrow() -> str:
        here[0] = not here[0]
        return "Prompts typed in this folder" if here[0] else "Prompts of all sessions"

    return Panel("Prompts of all sessions", find, choose, on_tab=narrow)


def rewind_panel(tui: "Tui") -> Panel | None:
    """Return the picker of turns to return to; None with a remark if there are none."""
    live = tui.live
    if live is None or tui.busy:
        tui.say_briefly("The agent is working; stop it first (Esc).")
        return None
    points = list_points(live.folder.events)
    if not points:
        tui.say_briefly("There is nothing to rewind yet.")
        return None
    effects = list_effects(live.folder, live.recorder.store)
    rows = []
    for point in reversed(points):
        changed = effects.get(point.turn, [])
        added = sum(effect.lines_added for effect in changed)
        removed = sum(effect.lines_removed for effect in changed)
        files = f", {count(len(changed), 'file')} +{added} -{removed}" if changed else ""
        label = " ".join(point.text.split())[:200] or "(no text)"
        rows.append(Row(MenuItem(label, f"{point.timestamp[11:16]}{files}"), point))

    def choose(point: Point) -> None:
        tui.panel = rewind_mode_panel(tui, point)
        tui.request_frame()

    return Panel("Rewind to before which prompt?", find_in(rows), choose)


def rewind_mode_panel(tui: "Tui", point: Point) -> Panel:
    """Return the choice of what to rewind."""
    modes: tuple[tuple[Mode, str], ...] = (
        ("both", "the conversation and the files"),
        ("conversation", "the conversation only; files stay as they are"),
        ("files", "the files only; the conversation stays"),
    )
    rows = [Row(MenuItem(text), mode) for mode, text in modes]

    def choose(mode: Mode) -> None:
        tui.panel = None
        assert tui.live is not None
        rewound = tui.live.rewind(point, mode)
        parts = []
        if mode != "files":
            parts.append("the conversation is back before that prompt")
            if not tui.editor.text:
                tui.editor.set(point.text)
        if rewound.plan is not None:
            parts.append(f"{count(len(rewound.plan.files), 'file')} restored")
        tui.transcript.say(f"Rewound: {', '.join(parts)}.", "dim")
        tui.request_frame()

    return Panel("Rewind what?", find_in(rows), choose)


def _short(folder: str) -> str:
    return neutralise(folder.rstrip("/").rpartition("/")[2])
