"""Lays out the live rows: what is going on, what waits, a question, the editor, the status."""

import msgspec

from trimtab.contracts.text import count, neutralise
from trimtab.host.parts import ToolInvocation
from trimtab.transports.tui.cells import Line, clip, plain, width
from trimtab.transports.tui.painter import Frame
from trimtab.transports.tui.transcript import Transcript, describe_seconds

LEAST_ROWS = 7
"""Rows the live region may take even in a low window."""
TOOL_TAIL = 5
MARK = "› "
"""Stands before the text that is edited."""
MENU_ROWS = 6
WAITING_ROWS = 3


class MenuItem(msgspec.Struct, frozen=True):
    """A row to choose from: a label, and a remark beside it."""

    label: str
    remark: str = ""
    disabled: bool = False
    key: str = ""
    """The keys that choose it; they are bright when they work."""
    detail: str = ""
    """More about it, for a row of its own while it is marked."""


class Menu(msgspec.Struct, frozen=True):
    """Rows to choose from; `marked` is the index of the marked one, None for none."""

    items: tuple[MenuItem, ...]
    marked: int | None = None
    active: bool = True
    """False while keys do not choose yet."""


class EditorView(msgspec.Struct, frozen=True):
    """The text being edited and the caret's position in it."""

    text: str = ""
    caret: int = 0
    mark: str = MARK
    hint: str = ""
    """Shown while the text is empty."""


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the live rows show besides the transcript."""

    columns: int
    rows: int
    editor: EditorView = EditorView()
    menu: Menu | None = None
    heading: tuple[Line, ...] = ()
    """The body of a question or the title of a panel, above its choices."""
    choices: Menu | None = None
    asks: bool = False
    """True if the choices answer a question; those of a panel may be longer than the window."""
    detail: str = ""
    """More about the marked choice."""
    activity: str = ""
    remark: str = ""
    """A short message that stands in place of the status for a while."""
    status: Line = ()
    now: float = 0.0


def lay_out(transcript: Transcript, scene: Scene) -> Frame:
    """Return the live rows and the caret. They never take more than the window has."""
    asking = bool(scene.heading or scene.choices)
    share = scene.rows // 2 + 1 if asking or scene.menu else scene.rows // 3
    edited, caret = lay_out_editor(scene.editor, scene.columns, max(1, scene.rows // 3))
    if scene.asks and scene.choices:  # every choice of a question is visible, if that is possible
        share = max(share, _least_rows(scene) + len(edited) + 1)  # with the status
    budget = max(1, min(max(share, LEAST_ROWS), scene.rows - 1))
    edited, caret = _scroll(edited, caret, budget)
    left = budget - len(edited)
    status = _status_rows(scene, left)
    left -= len(status)
    menu = lay_out_menu(scene.menu, min(MENU_ROWS, left)) if scene.menu else []
    left -= len(menu)
    question = _question_rows(scene, left)
    left -= len(question)
    waiting = _waiting_rows(transcript, min(WAITING_ROWS, left))
    left -= len(waiting)
    activity: list[Line] = [(("dim", scene.activity),)] if scene.activity and left > 0 else []
    left -= len(activity)
    running = _running_rows(transcript, scene, left)
    left -= len(running)
    tail = transcript.tail(scene.columns)
    tail = tail[-left:] if left > 0 else []
    left -= len(tail)
    above = [*tail, *running, *activity, *waiting, *question]
    if left > 0 and (above or not transcript.ended_blank):
        above.append(())
    rows = (*above, *edited, *menu, *status)
    return Frame(rows, (len(above) + caret[0], caret[1]))


def lay_out_editor(
    editor: EditorView, columns: int, limit: int
) -> tuple[list[Line], tuple[int, int]]:
    """Return the rows of the editor that are visible, and the caret in them."""
    if not editor.text and editor.hint:
        lead = width(editor.mark)
        return [(("accent bold", editor.mark), ("dim", editor.hint))], (0, lead)
    start, end = _find_near(editor.text, editor.caret, limit, limit * columns)
    rows, caret = _wrap_typed(editor.text[start:end], editor.caret - start, editor.mark, columns)
    lead = width(editor.mark)
    lines: list[Line] = [
        (("accent bold", " " * lead if number or start else editor.mark), ("", row))
        for number, row in enumerate(rows)
    ]
    return _scroll(lines, caret, limit)


def _find_near(text: str, caret: int, lines: int, characters: int) -> tuple[int, int]:
    """Return the part of a text around the caret that can be visible: a draft may be huge.

    A long line is cut at a multiple of a fixed length, so that its rows do not move with the caret.
    """
    start, end = caret, caret
    for _ in range(lines):
        start = text.rfind("\n", 0, start)
        if start < 0:
            break
    for _ in range(lines):
        end = text.find("\n", end + 1)
        if end < 0:
            break
    start, end = start + 1, len(text) if end < 0 else end
    step = max(1, characters)
    if caret - start > 2 * step:
        start += (caret - start) // step * step - step
    return start, min(end, caret + step)


def _wrap_typed(
    text: str, caret: int, mark: str, columns: int
) -> tuple[list[str], tuple[int, int]]:
    """Return the rows of a text that is being typed, and the caret in them."""
    limit_cells = max(4, columns - 1)
    lead = width(mark)
    rows: list[list[str]] = [[]]
    used, place = lead, (0, lead)
    for index, character in enumerate(text):
        if index == caret:
            place = len(rows) - 1, used
        if character == "\n":
            rows.append([])
            used = lead
            continue
        shown = " " * 4 if character == "\t" else neutralise(character, "approval")
        size = width(shown)
        if used + size >= limit_cells and rows[-1]:
            rows.append([])
            used = lead
            if index == caret:
                place = len(rows) - 1, used
        rows[-1].append(shown)
        used += size
    if caret >= len(text):
        place = len(rows) - 1, used
    return ["".join(row) for row in rows], place


def _scroll(
    lines: list[Line], caret: tuple[int, int], limit: int
) -> tuple[list[Line], tuple[int, int]]:
    """Return at most `limit` rows, with the caret's row among them."""
    if len(lines) <= limit:
        return lines, caret
    first = min(max(0, caret[0] - limit + 1), len(lines) - limit)
    return lines[first : first + limit], (caret[0] - first, caret[1])


def lay_out_menu(menu: Menu | None, limit: int) -> list[Line]:
    """Return the rows of a menu around the marked one, and how many are hidden."""
    if menu is None or limit <= 0 or not menu.items:
        return []
    marked = menu.marked or 0
    visible = limit if len(menu.items) <= limit else max(1, limit - 1)
    first = min(max(0, marked - visible + 1), len(menu.items) - visible)
    first = max(0, first)
    labels = max(width(item.label) for item in menu.items[first : first + visible])
    lines: list[Line] = []
    for index, item in enumerate(menu.items[first : first + visible], first):
        chosen = index == menu.marked
        style = "selected" if chosen else "dim" if item.disabled else ""
        pad = " " * max(2, min(labels, 40) - width(item.label) + 2) if item.remark else ""
        remark = neutralise(item.remark).replace("\n", " ")
        lines.append(
            (
                (style, "▸ " if chosen else "  "),
                ("bold accent" if menu.active else "dim", item.key),
                (style, neutralise(item.label).replace("\n", " ")),
                ("dim", f"{pad}{remark}"),
            )
        )
    if visible < len(menu.items) and limit > 1:
        lines.append((("dim", f"  … {len(menu.items) - visible:,} more: Up, Down"),))
    return lines


def _question_rows(scene: Scene, limit: int) -> list[Line]:
    """Return the question: its title, then its choices, then the rest if there is room."""
    text = " ".join(neutralise(scene.detail).split())
    detail: list[Line] = [(("dim italic", f"  {text}"),)] if text and limit > 4 else []
    heading = list(scene.heading)
    title = max(0, min(1 if scene.asks else 2, len(heading), limit - len(detail) - 2))
    choices = lay_out_menu(scene.choices, limit - len(detail) - title) if scene.choices else []
    room = max(0, limit - len(choices) - len(detail))
    if len(heading) > room:
        heading = heading[:room]
    return [*heading, *choices, *detail]


def _least_rows(scene: Scene) -> int:
    """Return the rows of a question that must be visible: title, command and choices."""
    choices = len(scene.choices.items) if scene.choices else 0
    return choices + min(2, len(scene.heading))


def _status_rows(scene: Scene, limit: int) -> list[Line]:
    if limit <= 1 or (limit <= 4 and (scene.menu or scene.choices)):
        return []
    if scene.asks and scene.choices and limit <= _least_rows(scene):
        return []  # the question needs the row
    if scene.remark:
        return [(("warning", neutralise(scene.remark)),)]
    return [fit_status(scene.status, scene.columns - 1)] if scene.status else []


def fit_status(line: Line, limit: int) -> Line:
    """Return as many of the facts, separated by middle dots, as fit."""
    text = plain(line)
    while width(text) > limit and " · " in text:
        text = text.rpartition(" · ")[0]
    return clip((("dim", text),), limit)


def _waiting_rows(transcript: Transcript, limit: int) -> list[Line]:
    waiting = list(transcript.waiting.values())
    if not waiting or limit <= 0:
        return []
    shown = waiting if len(waiting) <= limit else waiting[: limit - 1]
    lines: list[Line] = []
    for prompt in shown:
        mark = "→ steers: " if prompt.steering else "⋯ queued: "
        text = " ".join(neutralise(prompt.text).split())
        lines.append((("accent", mark), ("dim", text)))
    if len(shown) < len(waiting):
        lines.append((("dim", f"  … {count(len(waiting) - len(shown), 'more')} (/queue)"),))
    return lines


def _running_rows(transcript: Transcript, scene: Scene, limit: int) -> list[Line]:
    """Return the running calls, each with the end of its output, and the running agents."""
    if limit <= 0:
        return []
    lines: list[Line] = []
    if transcript.reasoning:
        last = transcript.reasoning.strip().rsplit("\n", 1)[-1]
        room = max(4, scene.columns - 4)
        lines.append((("dim italic", "∴ " + last[-room:]),))
    for agent_id, agent in transcript.agents.items():
        activity = transcript.agent_activity.get(agent_id, agent.description)
        lines.append((("accent", "◆ "), ("", neutralise(agent.name)), ("dim", f" {activity}")))
    for hook, since in transcript.hooks.values():
        if (seconds := scene.now - since) >= 1:
            lines.append((("dim", f"∴ hook {hook.name} · {describe_seconds(seconds)}"),))
    calls = list(transcript.calls.values())
    room = max(0, limit - len(lines) - len(calls))
    shown: list[Line] = []
    for call in reversed(calls):
        tail = _tail_of(call, min(TOOL_TAIL, room))
        room -= len(tail)
        shown = [_describe_running(transcript, call, scene), *tail, *shown]
    return [*lines, *shown][-limit:]


def _describe_running(transcript: Transcript, call: ToolInvocation, scene: Scene) -> Line:
    """Return a running call as one row; a long command is cut, the time is not."""
    seconds = scene.now - transcript.call_started.get(call.key, scene.now)
    took = f" · {describe_seconds(seconds)}" if seconds >= 1 else ""
    name, _, rest = neutralise(call.title).replace("\n", " ").partition(" ")
    title = (("accent", "○ "), ("bold", name), ("", f" {rest}"))
    return (*clip(title, scene.columns - 1 - width(took)), ("dim", took))


def _tail_of(call: ToolInvocation, limit: int) -> list[Line]:
    """Return the last rows that a running call has printed."""
    output = neutralise(call.output or call.detail).rstrip("\n")
    if call.name == "task" or not output or not limit:
        return []
    return [(("dim", f"  │ {row}"),) for row in output.split("\n")[-limit:]]
