"""Exports a session as a Markdown, HTML or JSON document, or as OpenTelemetry spans."""

import html
import json
from collections.abc import Iterable, Iterator

from trimtab.contracts.events.codec import decode, peek
from trimtab.contracts.text import neutralise
from trimtab.session.record import Record
from trimtab.session.spans import SpanFold, describe
from trimtab.session.summary import SessionSummary
from trimtab.session.transcript import Entry, read_transcript
from trimtab.version import __version__

FORMATS = ("md", "html", "json", "otel")


def export(form: str, summary: SessionSummary, records: Iterable[Record]) -> Iterator[str]:
    """Yield the document in pieces, so that memory stays small."""
    if form == "json":
        return _events(records)
    if form == "otel":
        return _spans(summary, records)
    return _markdown_document(summary, records) if form == "md" else _page(summary, records)


def _events(records: Iterable[Record]) -> Iterator[str]:
    """Yield a JSON array of the events as they are in the log."""
    yield "["
    separator = "\n"
    for record in records:
        yield separator + json_line(record.line)
        separator = ",\n"
    yield "\n]\n"


def _spans(summary: SessionSummary, records: Iterable[Record]) -> Iterator[str]:
    """Yield the spans of the session, one line of JSON each, without the texts of messages."""
    fold, scope = SpanFold(summary.id), {"name": "trimtab", "version": __version__}
    for record in records:
        for span in fold.add(decode(record.line)):
            yield json.dumps(describe(span, scope)) + "\n"
    for span in fold.finish():
        yield json.dumps(describe(span, scope)) + "\n"


def json_line(line: bytes) -> str:
    """Return a record as strict JSON; a line that only lenient readers accept is re-encoded."""
    try:
        peek(line)
        return line.decode()
    except ValueError:
        # Strict JSON has no NaN; lone surrogates and control characters must be escaped.
        return json.dumps(json.loads(line, strict=False, parse_constant=lambda _: None))


def _markdown_document(summary: SessionSummary, records: Iterable[Record]) -> Iterator[str]:
    yield f"# {_line(summary.title or summary.id)}\n\n"
    yield "".join(f"- {name}: {_line(value)}\n" for name, value in _facts(summary))
    for entry in read_transcript(records):
        yield _markdown(entry)


def _page(summary: SessionSummary, records: Iterable[Record]) -> Iterator[str]:
    title = _escaped(summary.title or summary.id)
    yield _HTML_HEAD.replace("TITLE", title)
    yield f"<h1>{title}</h1>\n<ul>\n"
    yield "".join(f"<li>{name}: {_escaped(value)}</li>\n" for name, value in _facts(summary))
    yield "</ul>\n"
    for entry in read_transcript(records):
        yield _html(entry)
    yield "</main>\n</html>\n"


def _facts(summary: SessionSummary) -> Iterator[tuple[str, str]]:
    named = {"Session": summary.id, "Folder": summary.cwd, "Branch": summary.branch}
    times = {"Started": summary.created_at, "Last used": summary.updated_at}
    for name, value in (named | times).items():
        if value:
            yield name, value


def _markdown(entry: Entry) -> str:
    heading, text = _line(_heading(entry)), neutralise(entry.text)
    if entry.kind in ("user", "assistant"):
        return f"\n## {heading}\n\n{text}\n"
    if entry.kind in ("call", "result"):
        return f"\n### {heading}\n\n{_fenced(text)}\n" if text else f"\n### {heading}\n"
    quoted = "".join(f"> {line}\n" for line in text.split("\n") if text)
    return f"\n*{heading}*\n\n{quoted}"


def _fenced(text: str) -> str:
    """Return a code block whose fence is longer than any run of backticks in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


def _html(entry: Entry) -> str:
    heading, text = _escaped(_heading(entry)), _escaped(entry.text)
    kind = f"{entry.kind} failed" if entry.failed else entry.kind
    if entry.kind in ("user", "assistant"):
        return f'<section class="{kind}"><h2>{heading}</h2><pre>{text}</pre></section>\n'
    if not text:
        return f'<p class="{kind}">{heading}</p>\n'
    return f'<details class="{kind}"><summary>{heading}</summary><pre>{text}</pre></details>\n'


def _heading(entry: Entry) -> str:
    heading = entry.heading
    if entry.kind == "call":
        heading = f"Tool call: {heading}"
    elif entry.kind == "result":
        heading = f"{'Failure' if entry.failed else 'Result'}: {heading}"
    return f"{heading} (sub-agent {entry.agent})" if entry.agent else heading


def _line(text: str) -> str:
    return " ".join(neutralise(text).split())


def _escaped(text: str) -> str:
    return html.escape(neutralise(text), quote=True)


_HTML_HEAD = """\
<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>TITLE</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; margin: 0; background: #fff; color: #1f2328 }
main { max-width: 52rem; margin: auto; padding: 1rem }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font: inherit; margin: 0 }
details pre { font: 13px/1.4 ui-monospace, monospace; padding: .5rem; background: #f6f8fa }
section { border-left: 3px solid #d1d9e0; padding-left: 1rem; margin: 1.5rem 0 }
.user { border-color: #0969da }
.failed summary { color: #cf222e }
summary { cursor: pointer }
h2 { font-size: 1rem; margin: 0 }
@media (prefers-color-scheme: dark) {
  body { background: #0d1117; color: #e6edf3 }
  details pre { background: #161b22 }
}
</style>
<main>
"""
