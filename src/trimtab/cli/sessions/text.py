"""Formats sessions as plain text; control characters in a session are neutralised."""

import calendar
import shutil
import sys
import time
from collections.abc import Iterator, Sequence

from trimtab.contracts.text import count, neutralise
from trimtab.session.archive import (
    Entry,
    Record,
    Report,
    SessionSummary,
    Trashed,
    plain_event,
)

_RESULT_LINES = 12


def session_table(summaries: Sequence[SessionSummary]) -> Iterator[str]:
    if not summaries:
        yield "No sessions yet."
        return
    ids = {summary.id: summary.id[:8] for summary in summaries}
    if len(set(ids.values())) < len(ids):
        ids = {name: name for name in ids}
    rows = [
        (
            ids[summary.id],
            local_time(summary.updated_at),
            size(summary.size),
            one_line(summary.cwd or ""),
            _title(summary),
        )
        for summary in summaries
    ]
    yield from _table(("ID", "LAST USED", "SIZE", "FOLDER", "TITLE"), rows)


def trash_table(entries: Sequence[Trashed]) -> Iterator[str]:
    if not entries:
        yield "The trash is empty."
        return
    rows = [
        (entry.id, local_time(entry.deleted_at), size(entry.size), one_line(entry.title))
        for entry in entries
    ]
    yield from _table(("ID", "DELETED", "SIZE", "TITLE"), rows)


def header(summary: SessionSummary) -> Iterator[str]:
    yield f"{summary.id}  {_title(summary)}".rstrip()
    used = f"last used {local_time(summary.updated_at)}, {size(summary.size)}"
    yield f"{one_line(summary.cwd)}, {used}" if summary.cwd else used
    yield ""


def event_line(record: Record) -> str:
    agent = f" [{one_line(record.agent_id)}]" if record.agent_id else ""
    data = plain_event(record.line).get("data")
    words = ""
    if isinstance(data, dict):
        named = ("content", "message", "toolName", "newModel", "newMode", "title", "sessionId")
        words = next((one_line(str(data[name])) for name in named if data.get(name)), "")
    return f"{record.timestamp:<24} {record.id:<36} {one_line(record.type)}{agent}  {words[:80]}"


def paragraph(entry: Entry) -> str:
    text = neutralise(entry.text).rstrip()
    agent = f" ({one_line(entry.agent)})" if entry.agent else ""
    heading = one_line(entry.heading)
    if entry.kind == "user":
        return _indented(f"> {text}", "> ")
    if entry.kind == "assistant":
        return f"{text}{agent}\n"
    if entry.kind == "call":
        return _indented(f"* {heading}{agent}: {_folded(text)}".rstrip(": "), "    ")
    if entry.kind == "result":
        outcome = f"failed: {text}" if entry.failed else text or "(no output)"
        return "    " + _indented(_folded(outcome), "    ")
    return f"- {heading}{agent}: {_folded(text)}" if text else f"- {heading}{agent}"


def report(report: Report | dict[str, str]) -> Iterator[str]:
    if isinstance(report, dict):
        yield f"{report['id']}  problem: {one_line(report['problem'])}"
        return
    verdict = "intact" if report.is_intact else "DAMAGED"
    if not report.can_be_opened:
        verdict = "TOO NEW"
    yield f"{report.id}  {verdict}, {count(report.events, 'event')}, {size(report.size)}"
    for finding in (*report.damage, *report.notes):
        yield f"  at byte {finding.offset}: {finding.fact}"
    if report.open_calls:
        calls = count(len(report.open_calls), "tool call")
        yield f"  Read as interrupted: {calls} without a result."
    if report.open_turns:
        yield f"  Not ended: {count(report.open_turns, 'turn')}."
    for name in report.set_aside:
        yield f"  An earlier repair kept the removed part in {name}."
    if not report.can_be_opened:
        yield "  Update trimtab to open it."
    elif not report.is_intact:
        yield f"  Repair it with: trimtab sessions repair {report.id}"


def one_line(text: str) -> str:
    return " ".join(neutralise(text).split())


def size(byte_count: int) -> str:
    number = float(byte_count)
    for unit in ("B", "kB", "MB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" or number >= 10 else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} GB"


def local_time(stamp: str) -> str:
    """Return an ISO time in UTC as local time, to the minute; return other text unchanged."""
    try:
        parsed = time.strptime(stamp[:19], "%Y-%m-%dT%H:%M:%S")
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(calendar.timegm(parsed)))
    except (ValueError, OverflowError, OSError):
        return one_line(stamp)


def _title(summary: SessionSummary) -> str:
    marks = ["in use"] if summary.in_use else []
    if summary.problem:
        marks.append(one_line(summary.problem))
    title = one_line(summary.title)
    return " ".join((*(f"[{mark}]" for mark in marks), title)).rstrip()


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield rows in columns as wide as their widest cell, cut to the width of the terminal."""
    widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(len(heads) - 1)]
    limit = shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000
    for row in (heads, *rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield "  ".join((*cells, row[-1])).rstrip()[:limit]


def _indented(text: str, by: str) -> str:
    return text.replace("\n", "\n" + by)


def _folded(text: str) -> str:
    lines = text.split("\n")
    if len(lines) <= _RESULT_LINES:
        return text
    return "\n".join(
        (*lines[:_RESULT_LINES], f"... {count(len(lines) - _RESULT_LINES, 'more line')}")
    )
