"""Commands of plain lines that need no live rows: choices are numbered lists."""

from collections.abc import Awaitable, Callable

from trimtab.commands.queue import shorten
from trimtab.config.paths import Home
from trimtab.contracts.errors import UsageError
from trimtab.contracts.text import count, neutralise
from trimtab.host.conversation_lines import find_entries, read_entries
from trimtab.host.session_list import list_resumable
from trimtab.runtime.live import LiveSession
from trimtab.session.store import SessionStore
from trimtab.undo.rewind import Mode, list_points

LISTED = 20
"""Sessions or paragraphs that are listed."""
MODES: dict[str, Mode] = {"both": "both", "conversation": "conversation", "files": "files"}


async def rewind(live: LiveSession, arguments: str) -> str:
    """List the prompts to return to, or return to before one of them."""
    points = list_points(live.folder.events)
    number, _, what = arguments.partition(" ")
    if not points:
        return "There is nothing to rewind yet."
    if not number:
        rows = [f"{point.turn}  {neutralise(shorten(point.text))}" for point in points]
        return "\n".join((*rows, "Write /rewind NUMBER [both | conversation | files]."))
    point = next((point for point in points if str(point.turn) == number), None)
    mode = MODES.get(what.strip() or "both")
    if point is None or mode is None:
        raise UsageError(
            f"Unknown arguments {arguments!r}; write /rewind NUMBER [both | conversation | files]."
        )
    rewound = live.rewind(point, mode)
    done = [] if mode == "files" else ["the conversation is back before that prompt"]
    if rewound.plan is not None and rewound.plan.files:
        done.append(f"{count(len(rewound.plan.files), 'file')} restored")
    return f"Rewound: {', '.join(done) or 'no files were changed'}."


async def copy(_: LiveSession, __: str) -> str:
    return "Plain lines cannot reach the clipboard; the last answer is above."


async def theme(_: LiveSession, __: str) -> str:
    return "Plain lines have no colours; set `theme` in your settings for the terminal."


async def vim(_: LiveSession, __: str) -> str:
    return "Plain lines are edited by the terminal; set `editorMode` for the other interface."


async def search(live: LiveSession, arguments: str) -> str:
    """Return the paragraphs of this conversation that contain all words, the newest last."""
    if not arguments:
        raise UsageError("There are no words to search for; write /search WORDS.")
    found = find_entries(read_entries(live.folder.events), arguments)
    lines = [line for _, line in found[-LISTED:]]
    return "\n".join(lines) or "No paragraph of this conversation contains these words."


PLAIN: dict[str, Callable[[LiveSession, str], Awaitable[str]]] = {
    "copy": copy,
    "rewind": rewind,
    "search": search,
    "theme": theme,
    "vim": vim,
}


def find_session(home: Home, cwd: str, own: str, text: str) -> str:
    """Return the id of the session that a number of the list, a name or an id stands for."""
    ids = [session_id for session_id, _ in _listed(home, own)]
    if text.isdecimal() and 0 < int(text) <= len(ids):
        return ids[int(text) - 1]
    return SessionStore(home).find(text, cwd=cwd)


def describe_sessions(home: Home, own: str) -> str:
    """Return the sessions to continue, numbered, the one used last first."""
    rows = [f"{number}  {line}" for number, (_, line) in enumerate(_listed(home, own), 1)]
    if not rows:
        return "There are no earlier sessions."
    return "\n".join((*rows, "Write /resume NUMBER, or an id or name."))


def _listed(home: Home, own: str) -> list[tuple[str, str]]:
    found = [
        (
            summary.id,
            neutralise(f"{shorten(summary.name or summary.title)}  {summary.id}"),
        )
        for summary in list_resumable(home, own)
        if not summary.in_use
    ]
    return found[:LISTED]
