"""Reads the cells of a Jupyter notebook, and changes one without touching the bytes of the others.

A notebook is a JSON object whose field `cells` is a list. The positions of cells and of their
fields are found in the text, so that a change replaces only the characters it must.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

BOM = "\ufeff"
CellType = Literal["code", "markdown", "raw"]
Span = tuple[int, int]
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


class NotebookProblem(Exception):
    """The file is not a notebook, or has no such cell; the message says what to do."""


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """A cell: its number from 1, its content, and where it and its fields stand in the text."""

    number: int
    content: dict[str, Any]
    span: Span
    fields: Mapping[str, Span]
    """The spans of the values of its fields."""

    @property
    def id(self) -> str:
        return str(self.content.get("id") or "")

    @property
    def kind(self) -> str:
        return str(self.content.get("cell_type"))

    @property
    def source(self) -> str:
        source = self.content.get("source")
        return "".join(map(str, source)) if isinstance(source, list) else str(source or "")


class Notebook(msgspec.Struct, frozen=True, kw_only=True):
    """The text of a notebook, its cells, and the span of the list of cells."""

    text: str
    cells: tuple[Cell, ...]
    span: Span
    has_ids: bool
    """True if cells have ids: from version 4.5 of the format on."""
    language: str


def read_notebook(data: bytes) -> Notebook:
    """Read a notebook of version 4. Raises `NotebookProblem`."""
    try:
        text = data.decode()
        begin = len(BOM) if text.startswith(BOM) else 0
        fields = dict(_fields(text, _skip(text, begin)))
        content = json.loads(text[begin:])
    except (ValueError, IndexError, RecursionError):
        raise NotebookProblem("it is not valid JSON in UTF-8; repair it first.") from None
    cells = content.get("cells") if isinstance(content, dict) else None
    version = (content.get("nbformat"), content.get("nbformat_minor")) if cells is not None else ()
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise NotebookProblem(
            "it has no list of cells; convert it to version 4 (jupyter nbconvert --to notebook)."
        )
    spans = _elements(text, fields["cells"][0])
    found = tuple(
        Cell(number=number, content=cell, span=span, fields=dict(_fields(text, span[0])))
        for number, (cell, span) in enumerate(zip(cells, spans, strict=True), 1)
    )
    metadata = content.get("metadata")
    info = metadata.get("language_info") if isinstance(metadata, dict) else None
    language = info.get("name") if isinstance(info, dict) else None
    return Notebook(
        text=text,
        cells=found,
        span=fields["cells"],
        has_ids=version >= (4, 5) if all(isinstance(part, int) for part in version) else False,
        language=str(language or ""),
    )


def find_cell(notebook: Notebook, wanted: str | int) -> Cell:
    """Return a cell by its id or its number. Raises `NotebookProblem`."""
    text = str(wanted)
    for cell in notebook.cells:
        if cell.id and cell.id == text:
            return cell
    if text.isdecimal() and 1 <= int(text) <= len(notebook.cells):
        return notebook.cells[int(text) - 1]
    raise NotebookProblem(
        f"it has no cell {text!r}; its cells are numbered 1 to {len(notebook.cells)}, view it to "
        "see their ids."
    )


def replace_cell(notebook: Notebook, cell: Cell, source: str, kind: CellType | None) -> str:
    """Return the text with another source in a cell.

    The outputs of a code cell are removed, as they are those of the old source.
    """
    if kind is not None and kind != cell.kind:
        content = {**cell.content, "cell_type": kind, "source": source}
        for name, empty in (("execution_count", None), ("outputs", [])):
            content.pop(name, None)
            if kind == "code":
                content[name] = empty
        return _put(notebook.text, [(cell.span, _render(notebook, content, cell.span[0]))])
    changes = []
    if "source" in cell.fields:
        start = cell.fields["source"][0]
        lines = source if isinstance(cell.content["source"], str) else split_source(source)
        changes.append((cell.fields["source"], _render(notebook, lines, start)))
    for name, written in (("execution_count", "null"), ("outputs", "[]")):
        if name in cell.fields and cell.kind == "code":
            changes.append((cell.fields[name], written))
    return _put(notebook.text, changes)


def insert_cell(notebook: Notebook, after: int, content: dict[str, Any]) -> str:
    """Return the text with a new cell after the cell of this number; 0 for the beginning."""
    text, (start, end) = notebook.text, notebook.span
    if not notebook.cells:
        outer = _indent_at(text, start)
        inner = None if outer is None else outer + _unit(notebook)
        written = _encode(notebook, content, inner)
        body = written if inner is None else _newline(text) + inner + written
        close = "" if outer is None else _newline(text) + outer
        return f"{text[: start + 1]}{body}{close}{text[end - 1 :]}"
    neighbour = notebook.cells[max(0, after - 1)]
    written = _render(notebook, content, neighbour.span[0])
    if after == 0:
        gap = _gap_before(notebook, neighbour)
        at = neighbour.span[0]
        return f"{text[:at]}{written},{gap}{text[at:]}"
    at = neighbour.span[1]
    return f"{text[:at]},{_gap_before(notebook, neighbour)}{written}{text[at:]}"


def delete_cell(notebook: Notebook, cell: Cell) -> str:
    """Return the text without a cell and without the comma that belonged to it."""
    text, cells = notebook.text, notebook.cells
    if len(cells) == 1:
        return text[: notebook.span[0] + 1] + text[notebook.span[1] - 1 :]
    if cell.number == 1:
        return text[: cell.span[0]] + text[cells[1].span[0] :]
    return text[: cells[cell.number - 2].span[1]] + text[cell.span[1] :]


def split_source(source: str) -> list[str]:
    """Return the lines of a source as notebooks store them: each with its newline."""
    return re.findall(r"[^\n]*\n|[^\n]+", source)


def _put(text: str, changes: list[tuple[Span, str]]) -> str:
    for (start, end), new in sorted(changes, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _render(notebook: Notebook, value: Any, at: int) -> str:
    """Return a value as JSON, indented as its place in the text is."""
    if isinstance(value, dict) and isinstance(value.get("source"), str):
        value = {**value, "source": split_source(value["source"])}
    return _encode(notebook, value, _indent_at(notebook.text, at))


def _encode(notebook: Notebook, value: Any, indent: str | None) -> str:
    """Return a value as JSON on one line if `indent` is None, else below lines so indented."""
    ascii_only = notebook.text.isascii() and "\\u" in notebook.text
    if indent is None:
        separators = (", ", ": ") if '": ' in notebook.text else (",", ":")
        return json.dumps(value, ensure_ascii=ascii_only, separators=separators)
    written = json.dumps(value, ensure_ascii=ascii_only, indent=_unit(notebook))
    return written.replace("\n", _newline(notebook.text) + indent)


def _unit(notebook: Notebook) -> str:
    """Return one level of indentation."""
    found = re.search(r"\{\r?\n([ \t]+)", notebook.text)
    return found[1] if found else " "


def _indent_at(text: str, at: int) -> str | None:
    """Return the indentation of the line that contains a position; None if nothing is indented."""
    if not re.search(r"\n[ \t]+", text):
        return None
    begin = text.rfind("\n", 0, at) + 1
    found = re.compile(r"[ \t]*").match(text, begin)
    return found[0] if found else ""


def _gap_before(notebook: Notebook, cell: Cell) -> str:
    """Return the white space between a cell and the bracket or comma before it."""
    text, at = notebook.text, cell.span[0]
    begin = at
    while text[begin - 1] in " \t\r\n":
        begin -= 1
    return text[begin:at]


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _fields(text: str, at: int) -> Iterator[tuple[str, Span]]:
    """Yield the fields of the object at a position with the spans of their values."""
    if text[at : at + 1] != "{":
        return
    at = _skip(text, at + 1)
    while text[at] != "}":
        name, at = _DECODER.raw_decode(text, at)
        start = _skip(text, _skip(text, at) + 1)
        _, end = _DECODER.raw_decode(text, start)
        yield str(name), (start, end)
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)


def _elements(text: str, at: int) -> Iterator[Span]:
    """Yield the spans of the elements of the list at a position."""
    at = _skip(text, at + 1)
    while text[at] != "]":
        _, end = _DECODER.raw_decode(text, at)
        yield at, end
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
