"""Citations in replies of model services, in one form: sources, and the spans they support."""

from typing import Any

MAX_CITATIONS = 500


class CitationBuilder:
    """Collects the citations of one reply. Equal sources are listed once."""

    def __init__(self, provider: str) -> None:
        """`provider` is `anthropic` or `openai`."""
        self._provider = provider
        self._sources: dict[tuple[str, str, str], dict[str, Any]] = {}
        self._spans: dict[tuple[int, int], dict[str, Any]] = {}

    def add(self, span: tuple[int, int], source: dict[str, str], **reference: Any) -> None:
        """Add a citation of a span of the text; `source` may have `title`, `url` and `path`."""
        if len(self._spans) >= MAX_CITATIONS or not any(source.values()):
            return
        title, url, path = (source.get(name, "") for name in ("title", "url", "path"))
        known = self._sources.setdefault(
            (title, url, path),
            {
                "id": f"source-{len(self._sources) + 1}",
                "provider": self._provider,
                **{name: value for name, value in source.items() if value},
            },
        )
        start, end = span
        spans = {"startIndex": start, "endIndex": end, "references": []}
        found = self._spans.setdefault(span, spans)
        given = {name: value for name, value in reference.items() if value is not None}
        found["references"].append({"sourceId": known["id"], **given})

    def build(self) -> dict[str, Any] | None:
        if not self._spans:
            return None
        return {"sources": list(self._sources.values()), "spans": list(self._spans.values())}


def read_annotations(builder: CitationBuilder, annotations: Any, offset: int, length: int) -> None:
    """Read the annotations of a text of OpenAI's that begins at `offset` of the reply."""
    for note in annotations if isinstance(annotations, list) else ():
        match note:
            case {"type": "url_citation"}:
                inner = note.get("url_citation")
                fields = inner if isinstance(inner, dict) else note
                source = {"title": _text(fields, "title"), "url": _text(fields, "url")}
                start, end = _number(fields, "start_index"), _number(fields, "end_index")
            case {"type": "file_citation" | "container_file_citation"}:
                name = _text(note, "filename") or _text(note, "file_id")
                source = {"title": name, "path": name}
                start = _number(note, "start_index", _number(note, "index"))
                end = _number(note, "end_index", start)
            case _:
                continue
        builder.add((offset + min(start, length), offset + min(end, length)), source)


def read_citations(builder: CitationBuilder, citations: Any, span: tuple[int, int]) -> None:
    """Read the citations of a block of text of Anthropic's, which is a span of the reply."""
    for note in citations if isinstance(citations, list) else ():
        if not isinstance(note, dict):
            continue
        title = _text(note, "document_title") or _text(note, "title")
        source = {"title": title, "url": _text(note, "url") or _text(note, "source")}
        if not any(source.values()) and "document_index" in note:
            source["title"] = f"document {_number(note, 'document_index') + 1}"
        builder.add(
            span,
            source,
            citedText=_text(note, "cited_text") or None,
            location=_read_location(note),
        )


def _read_location(note: dict[str, Any]) -> dict[str, Any] | None:
    for kind, start, end, names in (
        ("char", "start_char_index", "end_char_index", ("startIndex", "endIndex")),
        ("page", "start_page_number", "end_page_number", ("startPage", "endPage")),
        ("block", "start_block_index", "end_block_index", ("startBlock", "endBlock")),
    ):
        if start in note:
            first, last = names
            return {"type": kind, first: _number(note, start), last: _number(note, end)}
    return None


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def _number(fields: dict[str, Any], name: str, otherwise: int = 0) -> int:
    value = fields.get(name)
    return value if isinstance(value, int) and value >= 0 else otherwise
