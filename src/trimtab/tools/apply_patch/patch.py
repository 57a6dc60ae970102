"""Parses a patch that adds, changes, moves and deletes files."""

import re
from typing import Literal

import msgspec

BEGIN, END, END_OF_FILE = "*** Begin Patch", "*** End Patch", "*** End of File"
ADD, DELETE, UPDATE, MOVE = (
    *("*** Add File: ", "*** Delete File: "),
    *("*** Update File: ", "*** Move to: "),
)


class Hunk(msgspec.Struct):
    """Lines to find and change. `headers` are lines above them, the outermost first.

    `lines` are pairs of a mark (space, minus, plus) and a text.
    """

    headers: list[str] = []
    lines: list[tuple[str, str]] = []
    ends_file: bool = False

    @property
    def old(self) -> list[str]:
        return [text for mark, text in self.lines if mark != "+"]


class FilePatch(msgspec.Struct):
    """The changes of a file. `text` is the content of an added file."""

    kind: Literal["add", "delete", "update"]
    path: str
    move_to: str = ""
    text: str = ""
    hunks: list[Hunk] = []


class PatchError(Exception):
    """Raised for an invalid patch. The message is for the model."""


def parse_patch(text: str) -> list[FilePatch]:
    """Parse a patch. Raises `PatchError`, which names the line."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").strip("\n").split("\n")
    while lines and lines[-1].strip() in ("", "```", "EOF"):
        lines.pop()
    start = next((at for at, line in enumerate(lines) if line.strip() == BEGIN), None)
    if start is None or not lines or lines[-1].strip() != END:
        raise PatchError(f"A patch begins with the line `{BEGIN}` and ends with `{END}`.")
    reader = Reader(lines[:-1], start + 1)
    patches: list[FilePatch] = []
    while reader.line is not None:
        patches.append(read_file(reader))
    if not patches:
        raise PatchError("The patch changes no file.")
    return patches


class Reader:
    """Reads the lines of a patch one by one."""

    def __init__(self, lines: list[str], at: int) -> None:
        self._lines = lines
        self._at = at

    @property
    def line(self) -> str | None:
        return self._lines[self._at] if self._at < len(self._lines) else None

    def next(self) -> None:
        self._at += 1

    def problem(self, text: str) -> PatchError:
        return PatchError(f"Line {self._at + 1} of the patch: {text}")


def read_file(reader: Reader) -> FilePatch:
    line = reader.line or ""
    for kind, start in (("add", ADD), ("delete", DELETE), ("update", UPDATE)):
        path = line[len(start) :].strip()
        if line.startswith(start) and path:
            reader.next()
            patch = FilePatch(kind=kind, path=path)  # type: ignore[arg-type]  # one of the three
            if kind == "add":
                patch.text = read_added(reader)
            elif kind == "update":
                read_update(reader, patch)
            return patch
    expected = f"`{ADD}PATH`, `{DELETE}PATH` or `{UPDATE}PATH`"
    raise reader.problem(f"expected {expected}, found {line[:80]!r}.")


def read_added(reader: Reader) -> str:
    added: list[str] = []
    while (line := reader.line) is not None and not line.startswith("*** "):
        if not line.startswith("+"):
            raise reader.problem("every line of an added file begins with `+`.")
        added.append(line[1:] + "\n")
        reader.next()
    return "".join(added)


def read_update(reader: Reader, patch: FilePatch) -> None:
    if (line := reader.line) is not None and line.startswith(MOVE):
        patch.move_to = line[len(MOVE) :].strip()
        reader.next()
    while (line := reader.line) is not None and not is_file_header(line):
        patch.hunks.append(read_hunk(reader))
    if not patch.hunks and not patch.move_to:
        raise reader.problem(f"nothing is changed in {patch.path}.")


def is_file_header(line: str) -> bool:
    return line.startswith((ADD, DELETE, UPDATE))


def read_hunk(reader: Reader) -> Hunk:
    hunk = Hunk()
    while (line := reader.line) is not None and line.startswith("@@"):
        if header := line[2:].strip().removesuffix("@@").strip():
            hunk.headers.append(header)
        reader.next()
    while (line := reader.line) is not None and not line.startswith(("@@", "*** ")):
        if line[:1] not in ("", " ", "+", "-"):
            raise reader.problem("a line of a hunk begins with a space, `-` or `+`.")
        hunk.lines.append((line[:1] or " ", line[1:]))
        reader.next()
    if line is not None and line.strip() == END_OF_FILE:
        hunk.ends_file = True
        reader.next()
    elif line is not None and line.startswith("*** ") and not is_file_header(line):
        raise reader.problem(f"unexpected {line[:80]!r}.")
    if not any(mark in "+-" for mark, _ in hunk.lines):
        raise reader.problem("the hunk above changes nothing: it has neither `-` nor `+` lines.")
    if hunk.old:  # its lines locate it better than the line numbers of a usual diff
        hunk.headers = [header for header in hunk.headers if not is_range(header)]
    return hunk


def is_range(header: str) -> bool:
    """Return True if a header is a range of a usual diff: `-1,4 +1,5`."""
    return re.match(r"-\d+(,\d+)? \+\d+(,\d+)?( @@|$)", header) is not None
