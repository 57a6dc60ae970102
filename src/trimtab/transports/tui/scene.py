"""Builds the scene of the live rows from the state of the interface."""

from typing import TYPE_CHECKING

from trimtab.contracts.text import count, neutralise
from trimtab.transports.tui.cells import Line, wrap
from trimtab.transports.tui.transcript import Transcript, describe_seconds
from trimtab.transports.tui.view import MARK, EditorView, Menu, Scene

if TYPE_CHECKING:
    from trimtab.transports.tui.app import Tui

HINT = "Ask anything. / commands, @ files, ! shell, ? keys"
ANSWER_HINT = "Type your answer, then Enter; Esc gives none."


def build_scene(tui: "Tui", now: float, columns: int, rows: int) -> Scene:
    """Return what the live rows show now."""
    heading: tuple[Line, ...] = ()
    choices: Menu | None = None
    detail = ""
    if tui.panel is not None:
        if tui.panel.changes:
            tui.panel.refresh()
        heading = tuple(row for line in tui.panel.heading for row in wrap(line, columns - 1, "  "))
        choices, detail = tui.panel.menu, tui.panel.detail
    elif tui.asking.current is not None:
        heading = tui.asking.heading(columns - 1, rows // 2)
        choices = tui.asking.menu(now, columns - 1)
    return Scene(
        columns=columns,
        rows=rows,
        editor=_view_editor(tui),
        menu=None if heading else tui.completer.menu,
        heading=heading,
        choices=choices,
        asks=tui.panel is None,
        detail=detail,
        activity=_describe_activity(tui, now),
        remark=tui.remark,
        status=tui.status.with_mode(tui.app),
        now=now,
    )


def _view_editor(tui: "Tui") -> EditorView:
    mark, hint = MARK, HINT
    if tui.panel is not None:
        return EditorView(tui.panel.query, len(tui.panel.query), tui.panel.mark, "")
    if tui.asking.typing_words:
        choice = tui.asking.words_for
        mark = "rule: " if choice and choice.rule else "your words: "
        hint = "Enter sends them, Esc goes back"
    elif tui.asking.current is not None and tui.asking.current.asked.words_only:
        hint = ANSWER_HINT
    elif tui.editor.text.startswith("!"):
        mark = "! "
    if tui.live is None:
        hint = "starting …"
    return EditorView(tui.editor.text, tui.editor.caret, mark, hint)


def _describe_activity(tui: "Tui", now: float) -> str:
    if tui.asking.current is not None:
        return ""
    if tui.transcript.compacting:
        return "Summarising the conversation … Esc stops"
    if tui.working_since is None:
        return ""
    facts = [f"Working ({describe_work(tui.transcript)})"]
    facts.append(describe_seconds(now - tui.working_since))
    if tokens := tui.tokens - tui.tokens_before:
        facts.append(count(tokens, "token"))
    return " · ".join((*facts, "Esc stops" if tui.busy else "/tasks stops it"))


def describe_work(transcript: Transcript) -> str:
    """Return what is going on in a few words."""
    if len(transcript.calls) > 1:
        return count(len(transcript.calls), "tool call")
    if transcript.calls:
        return neutralise(next(iter(transcript.calls.values())).name)
    if transcript.agents:
        return count(len(transcript.agents), "agent")
    if transcript.writing:
        return "writing"
    return "thinking" if transcript.reasoning else "waiting for the model"


def write_long_question(tui: "Tui", columns: int, rows: int) -> None:
    """Move a question into the scrollback if it would fill half the window or be clipped."""
    waiting = tui.asking.current
    if waiting is None or waiting.body_written:
        return
    if lines := waiting.asked.render_long(columns, rows):
        waiting.body_written = True
        tui.transcript.blank()
        tui.transcript.add_lines(lines)
        tui.transcript.note_diff(waiting.asked.diff)
