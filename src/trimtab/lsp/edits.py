"""Turns a server's workspace edit into the new contents of files."""

from collections.abc import Callable, Iterator
from typing import Any

from trimtab.contracts.language import FileEdit, LanguageProblem
from trimtab.lsp.positions import find_offset, line_starts, uri_to_path

MAX_FILES = 500
BOM = "\ufeff"
NOTHING = "the server changes nothing; is the cursor on the name? Give line and symbol."


def plan_edits(edit: Any, load: Callable[[str], bytes]) -> list[FileEdit]:
    """Return the files that an edit changes. Raises `LanguageProblem` for a senseless one."""
    wanted: dict[str, list[Any]] = {}
    for uri, edits in _changes(edit):
        wanted.setdefault(uri_to_path(uri), []).extend(edits)
    if not wanted:
        raise LanguageProblem(NOTHING)
    if len(wanted) > MAX_FILES:
        raise LanguageProblem(f"the server wants to change {len(wanted)} files at once.")
    files = []
    for path, edits in wanted.items():
        try:
            before = load(path)
        except OSError as error:
            raise LanguageProblem(f"{path} cannot be read: {error.strerror}.") from None
        after = apply_edits(read_source(path, before), edits).encode("utf-8", "surrogatepass")
        if after != before:
            files.append(FileEdit(path=path, before=before, after=after))
    if not files:
        raise LanguageProblem(NOTHING)
    return files


def read_source(path: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise LanguageProblem(f"{path} is not text in UTF-8; use other tools for it.") from None


def _changes(edit: Any) -> Iterator[tuple[Any, list[Any]]]:
    if not isinstance(edit, dict):
        raise LanguageProblem(NOTHING)
    documents = edit.get("documentChanges")
    if not isinstance(documents, list):
        changes = edit.get("changes")
        for uri, edits in changes.items() if isinstance(changes, dict) else ():
            yield uri, edits if isinstance(edits, list) else [edits]
        return
    for change in documents:
        document = change.get("textDocument") if isinstance(change, dict) else None
        edits = change.get("edits") if isinstance(change, dict) else None
        if not isinstance(document, dict) or not isinstance(edits, list):
            raise LanguageProblem("the server wants to move or delete files; do that yourself.")
        yield document.get("uri"), edits


def apply_edits(text: str, edits: list[Any]) -> str:
    """Return a text with edits made. Raises `LanguageProblem` if they overlap or lie outside."""
    mark = BOM if text.startswith(BOM) else ""
    text = text.removeprefix(BOM)
    starts = line_starts(text)
    spans: list[tuple[int, int, str]] = []
    for edit in edits:
        limits = edit.get("range") if isinstance(edit, dict) else None
        new = edit.get("newText") if isinstance(edit, dict) else None
        if not isinstance(limits, dict) or not isinstance(new, str):
            raise LanguageProblem("the server sent an edit without a range or a text.")
        start = find_offset(text, starts, limits.get("start"))
        end = find_offset(text, starts, limits.get("end"))
        spans.append((start, end, new))
    spans.sort(key=lambda span: span[:2])
    pieces, at = [mark], 0
    for start, end, new in spans:
        if start < at or end < start:
            raise LanguageProblem("the server sent edits that overlap.")
        pieces += [text[at:start], new]
        at = end
    return "".join((*pieces, text[at:]))
