"""Panels in the live rows: a list that is searched by typing, chosen with Enter, closed by Esc."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.contracts.text import count, neutralise
from trimtab.transports.tui.cells import Line
from trimtab.transports.tui.history import Entry
from trimtab.transports.tui.view import Menu, MenuItem
from trimtab.undo.rewind import Mode, Point, list_effects, list_points

if TYPE_CHECKING:
    from trimtab.transports.tui.app import Tui


class Row(msgspec.Struct, frozen=True):
    """An entry of a panel; `value` is given to the panel's `on_choose`."""

    item: MenuItem
    value: Any


class Key(msgspec.Struct, frozen=True):
    """A letter that does something with the marked row of a panel."""

    help: str
    act: Callable[[Any], None]


class Panel:
    """A list to choose from. `find` returns the rows for what was typed.

    Letters of `keys` and, with `digits`, the numbers of the rows act while nothing is searched for;
    `/` begins a search then. Other panels search with the first letter.
    """

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
        self._searching = False
        self.chooses = "chooses"
        """The verb for Enter."""
        self.search_mark = "find: "
        self.keys: dict[str, Key] = {}
        self.digits = False
        self.changes = False
        """True if its rows change by themselves."""
        self.on_close: Callable[[], object] = lambda: None
        """Called when the panel is closed without a choice."""

    @property
    def heading(self) -> tuple[Line, ...]:
        """The title, with what the keys do."""
        acts = [f"{letter} {key.help}" for letter, key in self.keys.items()]
        search = ["/ searches"] if self._acts else []
        keys = ", ".join((f"Enter {self.chooses}", *acts, *search, "Esc closes"))
        return ((("accent bold", self.title), ("dim", f"  {keys}")),)

    @property
    def _acts(self) -> bool:
        """True if keys do something by themselves, until a search begins."""
        return bool(self.keys or self.digits) and not self.query and not self._searching

    @property
    def mark(self) -> str:
        """The mark before the words searched for; empty while keys act."""
        return "" if self._acts else self.search_mark

    @property
    def menu(self) -> Menu:
        numbered = self.digits and self._acts
        rows = tuple(
            msgspec.structs.replace(row.item, key=f"{number}  " if number < 10 else "   ")
            if numbered
            else row.item
            for number, row in enumerate(self._rows, 1)
        )
        return Menu(rows or (MenuItem("nothing found", disabled=True),), self._marked)

    @property
    def detail(self) -> str:
        """More about the marked row than its line says."""
        return self._rows[self._marked].item.detail if self._rows else ""

    def type(self, text: str) -> None:
        """Do what a letter stands for, or add to the words searched for."""
        if self._acts and self._act(text):
            return
        self._search(self.query + text)

    def _act(self, text: str) -> bool:
        """Return True if a letter has done something by itself."""
        if text == "/":
            self._searching = True
            return True
        if text in self.keys:
            if self._rows:
                self.keys[text].act(self._rows[self._marked].value)
            return True
        if self.digits and text.isdecimal() and 0 < int(text) <= min(9, len(self._rows)):
            self._on_choose(self._rows[int(text) - 1].value)
            return True
        return False

    def erase(self) -> None:
        self._searching = bool(self.query)
        self._search(self.query[:-1])

    def refresh(self) -> None:
        """Find the rows again, because their source has changed; the mark stays on its row."""
        marked = self._rows[self._marked].value if self._rows else None
        self._search(self.query)
        values = [row.value for row in self._rows]
        self._marked = values.index(marked) if marked in values else 0

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
        return [row for row in rows if all(word in _searched(row.item) for word in words)]

    return find


def _searched(item: MenuItem) -> str:
    return f"{item.label} {item.remark} {item.detail}".lower()


def search_panel(tui: "Tui") -> Panel:
    """Return the search over the prompts of all sessions."""
    here = [False]

    def find(query: str) -> Sequence[Row]:
        entries = tui.history.search(query, here=here[0])[:200]
        return [
            Row(MenuItem(" ".join(entry.text.split())[:300], _short(entry.cwd)), entry)
            for entry in entries
            if not entry.text.startswith("/history")
        ]

    def choose(entry: Entry) -> None:
        tui.panel = None
        tui.editor.remember()
        tui.editor.recall(entry)

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
        rows.append(Row(MenuItem(label, f"{local_time(point.timestamp)}{files}"), point))

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
        if rewound.plan is not None and rewound.plan.files:
            parts.append(f"{count(len(rewound.plan.files), 'file')} restored")
        tui.transcript.say(f"Rewound: {', '.join(parts) or 'no files were changed'}.", "dim")
        tui.request_frame()

    panel = Panel("Rewind what?", find_in(rows), choose)
    panel.digits = True
    return panel


def local_time(stamp: str) -> str:
    """Return a timestamp in the person's time: the hour today, the date before."""
    try:
        when = datetime.fromisoformat(stamp).astimezone()
    except ValueError:
        return stamp[:16].replace("T", " ")
    today = when.date() == datetime.now().astimezone().date()
    return when.strftime("%H:%M" if today else "%Y-%m-%d %H:%M")


def _short(folder: str) -> str:
    return neutralise(folder.rstrip("/").rpartition("/")[2])
