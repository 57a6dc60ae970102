"""Searches the conversation of the session: a panel of its paragraphs that opens the pager."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trimtab.host.conversation_lines import describe_entry, find_entries, read_entries
from trimtab.transports.tui.other_programs import page
from trimtab.transports.tui.panels import Panel, Row, local_time
from trimtab.transports.tui.view import MenuItem

if TYPE_CHECKING:
    from trimtab.transports.tui.app import Tui

LISTED = 200
"""Paragraphs that are listed at most."""


def conversation_panel(tui: "Tui") -> Panel | None:
    """Return the paragraphs of the conversation, the newest first; None if there are none."""
    live = tui.live
    assert live is not None
    entries = read_entries(live.folder.events)
    if not entries:
        tui.say_briefly("Nothing has been said yet.")
        return None

    def find(query: str) -> Sequence[Row]:
        found = find_entries(entries, query)
        return [
            Row(MenuItem(line, local_time(entries[number].timestamp)), number)
            for number, line in found[::-1][:LISTED]
        ]

    def choose(number: int) -> None:
        tui.panel = None
        texts = [(describe_entry(entry, 70), entry.text) for entry in entries[number:]]
        tui.spawn(page(tui, texts, "From the paragraph on; q leaves, / searches"))

    panel = Panel("Search this conversation", find, choose)
    panel.chooses = "reads on from there"
    return panel
